import type { FastifyPluginAsync } from 'fastify'
import type { SkillsOf } from '../http/callers.ts'
import { renderPrompt } from '../core/listing/prompt.ts'
import type { SkillMetadata } from '../core/shared/skill.ts'
import { FOLDER_PROBLEMS } from '../openapi/problem-sets.ts'
import { textAnswer } from '../openapi/responses.ts'
import { answerRendered } from '../http/send/json.ts'
import { locate } from './prompt.ts'

interface LlmsTxtOptions {
  readonly skillsOf: SkillsOf
  /** Address of the service as its callers use it, without a slash at the end. Default: its path prefix. */
  readonly publicUrl?: string | undefined
}

/** The file says that it is Markdown; its name says that it is text, which browsers show. */
const MEDIA_TYPE = 'text/plain; charset=utf-8'

const EXAMPLE = '# Skills\n\n## Skills\n\n- [calculator](/skills/calculator/files/SKILL.md): Basic arithmetic\n'

/** `GET /llms.txt`: the skills in the form of that convention (https://llmstxt.org/). */
export const llmsTxtRoute: FastifyPluginAsync<LlmsTxtOptions> = async (app, { skillsOf, publicUrl }) => {
  app.get('/llms.txt', {
    config: { reads: { event: 'skill.list', door: 'llms.txt' } },
    schema: {
      operationId: 'getLlmsTxt',
      summary: 'The skills by the convention of llms.txt',
      description: 'Markdown: every valid skill with its description and the path of its SKILL.md, then the other ' +
        'routes. Text of skills is escaped: none can end its entry or begin another.',
      tags: ['skills'],
      bytes: textAnswer('text/plain', EXAMPLE, 'The list'),
      problems: FOLDER_PROBLEMS
    }
  }, async (request, reply) => {
    const skills = skillsOf(request)
    // Throws without a folder of skills, which is not the same as an empty one.
    await skills.list()
    const available = await skills.available()
    return await answerRendered(
      reply, available, () => render(available, publicUrl ?? app.prefix), MEDIA_TYPE
    )
  })
}

async function render (skills: readonly SkillMetadata[], base: string): Promise<string> {
  const list = await renderPrompt(skills, { form: 'markdown', locate: (skill) => locate(base, skill) })
  return `# Skills

> Agent Skills: folders of instructions, scripts and references for agents, served over HTTP.

Read the SKILL.md of a skill before you use it, and other files when it names them: they are below the same path.
${list === '' ? '' : `\n## Skills\n\n${list}\n`}
## Optional

- [Catalog](${base}/catalog): search with \`?q=\`, findings, sizes and revisions as JSON
- [Prompt](${base}/agent/prompt): the same list for a system prompt
- [OpenAPI](${base}/openapi.json): every address of the service
`
}
