import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type PromptForm, renderPrompt } from '../core/listing/prompt.ts'
import type { SkillsOf } from '../http/callers.ts'
import { addressOf, type SkillMetadata } from '../core/shared/skill.ts'
import { PromptQuerySchema, PromptSchema } from '../schemas/prompt.ts'
import { PROMPT_EXAMPLE } from '../openapi/examples.ts'
import { FOLDER_PROBLEMS } from '../openapi/problem-sets.ts'
import { jsonAnswer, textAnswer } from '../openapi/responses.ts'
import { answerRendered, JSON_MEDIA_TYPE } from '../http/send/json.ts'

interface PromptRoutesOptions {
  readonly skillsOf: SkillsOf
  /** Address of the service as its callers use it, without a slash at the end. Default: its path prefix. */
  readonly publicUrl?: string | undefined
}

/** A prompt that is rendered, or being rendered. */
interface Prompt {
  readonly budget: number | undefined
  readonly text: Promise<string>
}

const MEDIA_TYPES = {
  xml: 'text/plain; charset=utf-8',
  json: JSON_MEDIA_TYPE,
  markdown: 'text/plain; charset=utf-8'
} as const satisfies Record<PromptForm, string>

/** The catalog for a system prompt. */
export const promptRoutes: FastifyPluginAsyncTypebox<PromptRoutesOptions> = async (app, { skillsOf, publicUrl }) => {
  // One prompt per form, the latest, for as long as the catalog is unchanged.
  const prompts = new WeakMap<readonly SkillMetadata[], Map<PromptForm, Prompt>>()

  function promptOf (available: readonly SkillMetadata[], form: PromptForm, budget: number | undefined): Prompt {
    let forms = prompts.get(available)
    if (forms === undefined) prompts.set(available, forms = new Map())
    let prompt = forms.get(form)
    if (prompt === undefined || prompt.budget !== budget) {
      prompt = {
        budget,
        text: renderPrompt(available, { form, budget, locate: (skill) => locate(publicUrl ?? app.prefix, skill) })
      }
      forms.set(form, prompt)
    }
    return prompt
  }

  app.get('/agent/prompt', {
    config: { reads: { event: 'skill.list', door: 'prompt' } },
    schema: {
      operationId: 'getPrompt',
      summary: 'The catalog for a system prompt',
      description: 'Name, description and location of every valid skill, for a model to choose from. Text of skills ' +
        'is escaped: none can end its entry or begin another.',
      tags: ['agent'],
      querystring: PromptQuerySchema,
      response: { 200: jsonAnswer(PromptSchema, 'The skills') },
      bytes: textAnswer('text/plain', PROMPT_EXAMPLE),
      problems: FOLDER_PROBLEMS
    }
  }, async (request, reply) => {
    const { format = 'xml', budget } = request.query
    const skills = skillsOf(request)
    // Throws without a folder of skills, which is not the same as an empty one.
    await skills.list()
    const prompt = promptOf(await skills.available(), format, budget)
    return await answerRendered(reply, prompt, () => prompt.text, MEDIA_TYPES[format])
  })
}

/**
 * The address of a skill's main file: a path unless the service knows its public address. It is that of the file and
 * not of the document, so that what a skill names relative to its main file is found relative to it.
 * @param base address of the service, or its path prefix
 */
export function locate (base: string, skill: SkillMetadata): string {
  return `${base}/skills/${encodeURIComponent(addressOf(skill))}/files/SKILL.md`
}
