import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { renderPrompt } from '../listing/prompt.ts'
import type { View } from '../core/view.ts'
import { addressOf, type SkillMetadata } from '../core/shared/skill.ts'
import type { SkillsOf } from '../http/callers.ts'
import { JSON_MEDIA_TYPE } from '../http/send/json.ts'
import { answer, json, text } from '../openapi/responses.ts'
import { PromptQuerySchema, PromptSchema } from '../schemas/prompt.ts'

interface PromptRoutesOptions {
  readonly skillsOf: SkillsOf
  /** URL of the service for its callers, without a slash at the end. Default: the path prefix. */
  readonly publicUrl?: string | undefined
}

/** Browsers show plain text, but download Markdown. */
const TEXT_MEDIA_TYPE = 'text/plain; charset=utf-8'

const PROMPT_EXAMPLE = '<available_skills>\n<skill>\n<name>\ncalculator\n</name>\n' +
  '<description>\nBasic arithmetic\n</description>\n' +
  '<location>\n/skills/calculator/files/SKILL.md\n</location>\n</skill>\n</available_skills>'

const LLMS_TXT_EXAMPLE =
  '# Skills\n\n## Skills\n\n- [calculator](/skills/calculator/files/SKILL.md): Basic arithmetic\n'

/** Serves the list of skills as text for models: for a system prompt, and as llms.txt (https://llmstxt.org/). */
export const promptRoutes: FastifyPluginAsyncTypebox<PromptRoutesOptions> = async (app, { skillsOf, publicUrl }) => {
  const base = publicUrl ?? app.prefix

  /**
   * Returns the URL of a main file, so that a model can resolve relative paths in it. It is only a path unless the
   * public URL is configured.
   */
  const locate = (skill: SkillMetadata) => `${base}/skills/${encodeURIComponent(addressOf(skill))}/files/SKILL.md`

  app.get('/agent/prompt', {
    config: { reads: { event: 'skill.list', api: 'prompt' } },
    schema: {
      operationId: 'getPrompt',
      summary: 'The catalog for a system prompt',
      description: 'Name, description and location of every valid skill, for a model to choose from. Text of skills ' +
        'is escaped: none can end its entry or begin another.',
      tags: ['agent'],
      querystring: PromptQuerySchema,
      response: { 200: answer('The skills', { ...json(PromptSchema), ...text('text/plain', PROMPT_EXAMPLE) }) }
    }
  }, async (request, reply) => {
    const { format = 'xml', budget } = request.query
    reply.header('content-type', format === 'json' ? JSON_MEDIA_TYPE : TEXT_MEDIA_TYPE)
    return await renderPrompt(await availableIn(skillsOf(request)), { form: format, budget, locate })
  })

  app.get('/llms.txt', {
    config: { reads: { event: 'skill.list', api: 'llms.txt' } },
    schema: {
      operationId: 'getLlmsTxt',
      summary: 'The skills by the convention of llms.txt',
      description: 'Markdown: every valid skill with its description and the path of its SKILL.md, then the other ' +
        'routes. Text of skills is escaped: none can end its entry or begin another.',
      tags: ['skills'],
      response: { 200: answer('The list', text('text/plain', LLMS_TXT_EXAMPLE)) }
    }
  }, async (request, reply) => {
    const list = await renderPrompt(await availableIn(skillsOf(request)), { form: 'markdown', locate })
    reply.header('content-type', TEXT_MEDIA_TYPE)
    return `# Skills

> Agent Skills: folders of instructions, scripts and references for agents, served over HTTP.

Read the SKILL.md of a skill before you use it, and other files when it names them: they are below the same path.
${list === '' ? '' : `\n## Skills\n\n${list}\n`}
## Optional

- [Catalog](${base}/catalog): search with \`?q=\`, findings, sizes and revisions as JSON
- [Prompt](${base}/agent/prompt): the same list for a system prompt
- [OpenAPI](${base}/openapi.json): every address of the service
`
  })
}

/** Returns all valid skills. Fails if no folder of skills is available, which is not the same as an empty one. */
async function availableIn (skills: View): Promise<readonly SkillMetadata[]> {
  await skills.list()
  return await skills.available()
}
