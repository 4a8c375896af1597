import { Type } from '@sinclair/typebox'
import type { PromptForm, PromptSkill } from '../listing/prompt.ts'
import { describes, named, StringEnum } from './typebox.ts'
import { MIN_PROMPT_CHARACTERS } from '../listing/prompt.ts'

export const PromptQuerySchema = Type.Object({
  format: Type.Optional(describes<PromptForm>()(StringEnum(['xml', 'json', 'markdown'], {
    default: 'xml',
    description: "`xml` is skills-ref's `<available_skills>`, `markdown` a list with one line per skill"
  }))),
  budget: Type.Optional(Type.Integer({
    minimum: MIN_PROMPT_CHARACTERS,
    description: 'Most characters (UTF-16 code units) of the answer. Skills that do not fit are skipped, and the ' +
      'answer says how many'
  }))
})

export const PromptSchema = named('Prompt', Type.Object({
  skills: Type.Array(describes<PromptSkill>()(Type.Object({
    name: Type.String(),
    description: Type.String(),
    location: Type.String({
      description: 'URL path of the main file; what the skill names relative to it is found relative to this'
    })
  })), { description: 'The valid skills, sorted by code point' }),
  omitted: Type.Integer({ minimum: 0, description: 'How many skills are skipped for the budget' })
}), {
  skills: [{ name: 'calculator', description: 'Basic arithmetic', location: '/skills/calculator/files/SKILL.md' }],
  omitted: 0
})
