import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { describeState } from '../listing/entry.ts'
import { readCatalogPage } from '../listing/pages.ts'
import type { SkillsOf } from '../http/callers.ts'
import { HttpProblem } from '../http/problem.ts'
import {
  CatalogEntryQuerySchema, CatalogEntrySchema, CatalogPageSchema, CatalogQuerySchema, DEFAULT_PAGE_ENTRIES
} from '../schemas/catalog.ts'
import { answer, json } from '../openapi/responses.ts'
import { SkillNameParamsSchema } from '../schemas/skills.ts'
import { jsonText, keptJson } from '../http/send/json.ts'
import { withCatalogRevision, REVISION_HEADER } from '../http/headers.ts'
import { viewAtRevision } from '../http/revision.ts'
import { own } from '../core/shared/json.ts'
import type { Validator } from '../verdicts/entry.ts'
import { readTargets } from './validate.ts'

interface CatalogRoutesOptions {
  readonly skillsOf: SkillsOf
  readonly validate: Validator
}

/** Serves the catalog: entries of all skills, page by page, and search. */
export const catalogRoutes: FastifyPluginAsyncTypebox<CatalogRoutesOptions> = async function catalogRoutes (
  app, { skillsOf, validate }
) {
  app.get('/catalog', {
    config: {
      reads: { event: 'skill.list', api: 'rest' },
      load: 'costly',
      weight: ({ query }) => own(query, 'q') === undefined ? undefined : 'costly'
    },
    schema: {
      operationId: 'browseCatalog',
      summary: 'Browse and search the skills',
      description: 'Rich entries, a page at a time; a page that would be very large is shorter than `limit`. Follow ' +
        '`next_cursor` until it is `null`. Without `q`, a skill that is there throughout comes exactly once, even if ' +
        'the catalog changes in between. With `q`, the search is made again for each page: only a skill whose rank ' +
        'has changed can be missed or come twice.',
      tags: ['skills'],
      querystring: CatalogQuerySchema,
      response: { 200: answer('The page', json(CatalogPageSchema), 'catalog-revision') }
    }
  }, async (request, reply) => {
    const { q, valid, limit = DEFAULT_PAGE_ENTRIES, cursor } = request.query
    const skills = skillsOf(request)
    const { entries, total, nextCursor = null } = await withCatalogRevision(reply, skills.feed, async () => {
      const page = await readCatalogPage({ skills, validate }, { limit, query: q, valid, cursor })
      if (page === undefined) throw new HttpProblem('bad_cursor')
      return page
    })
    if (q !== undefined) request.found = total
    const [texts, next] = [entries.join(','), JSON.stringify(nextCursor)]
    return jsonText(reply, `{"skills":[${texts}],"total":${total},"next_cursor":${next}}`)
  })

  app.get('/catalog/:name', {
    config: { reads: { event: 'skill.entry', api: 'rest' } },
    schema: {
      operationId: 'getCatalogEntry',
      summary: 'Describe a skill',
      description: 'The entry of one skill, as in the catalog: frontmatter, revision, size, and what is wrong with ' +
        'it. With `target`, what agents, validators and upload services do with it.',
      tags: ['skills'],
      params: SkillNameParamsSchema,
      querystring: CatalogEntryQuerySchema,
      response: { 200: answer('The entry', json(CatalogEntrySchema)) }
    }
  }, async (request, reply) => {
    const skills = viewAtRevision(request, skillsOf(request))
    const targets = readTargets(request.query.target)
    const entry = await skills.read(request.params.name, (state) =>
      describeState(state, (all) => validate(all, targets)))
    if (entry.revision !== null) reply.header(REVISION_HEADER, entry.revision)
    return keptJson(reply, entry, JSON.stringify)
  })
}
