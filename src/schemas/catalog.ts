import { Type } from '@sinclair/typebox'
import type { CatalogEntry } from '../listing/entry.ts'
import type { EntryVerdicts } from '../verdicts/entry.ts'
import { TOKEN_METHOD } from '../verdicts/tokens.ts'
import { TrustSchema } from './trust.ts'
import { describes, named, nullable, reference, StringEnum } from './typebox.ts'
import { DigestSchema, EXAMPLE_DIGEST, RevisionSchema } from './skills.ts'
import { FindingSchema, TargetQuerySchema, TargetVerdictSchema, TokenEstimateSchema } from './verdicts.ts'

/** Entries on one page of GET /catalog: the default, and the most that `limit` allows. */
export const DEFAULT_PAGE_ENTRIES = 50
export const MAX_PAGE_ENTRIES = 500

/** Longest search query, in code points. */
export const MAX_QUERY_CODE_POINTS = 1_000

export const CatalogQuerySchema = Type.Object({
  q: Type.Optional(Type.String({
    maxLength: MAX_QUERY_CODE_POINTS,
    description: 'Words to search for in name, description and headings: the best match first. An empty one is ignored'
  })),
  valid: Type.Optional(Type.Boolean({ description: 'Only skills that are valid, or that are not' })),
  limit: Type.Optional(Type.Integer({
    minimum: 1,
    maximum: MAX_PAGE_ENTRIES,
    default: DEFAULT_PAGE_ENTRIES,
    description: 'Most entries in the answer'
  })),
  cursor: Type.Optional(Type.String({
    description: '`next_cursor` of the page before, sent with the same `q` and `valid`'
  }))
})

export const CatalogEntryQuerySchema = Type.Object({ revision: RevisionSchema, target: TargetQuerySchema })

const EXAMPLE_ENTRY = {
  name: 'calculator',
  description: 'Provides basic arithmetic operations',
  type: 'project',
  frontmatter: {
    name: 'calculator', description: 'Provides basic arithmetic operations', license: 'MIT', metadata: { version: 2 }
  },
  revision: EXAMPLE_DIGEST,
  size_bytes: 2691,
  file_count: 2,
  valid: true,
  tokens: { listed: 11, body: 450, all_files: 660, method: TOKEN_METHOD },
  findings: [{
    code: 'metadata_not_text',
    severity: 'warning',
    message: "metadata has values that are not text: 'version'",
    fix: "Put the values of 'version' in double quotes",
    field: 'metadata',
    file: 'SKILL.md',
    line: 5,
    column: 1,
    targets: ['spec', 'mcp']
  }]
}

type Entry = CatalogEntry & EntryVerdicts & { score?: number }

export const CatalogEntrySchema = named('CatalogEntry', describes<Entry>()(Type.Object({
  name: Type.String({ description: 'The address of the skill: the name of its folder' }),
  description: Type.String({ description: 'That of the frontmatter; empty when there is none' }),
  type: StringEnum(['project', 'personal'], { description: 'Which kind of root it comes from' }),
  frontmatter: Type.Unsafe<unknown>({
    type: 'object',
    additionalProperties: true,
    description: 'All fields as JSON; `{}` when there are none or they cannot be read. What JSON ' +
      'cannot express is text'
  }),
  revision: nullable(Type.String({
    ...DigestSchema, description: 'Equal for equal content, as in the manifest; `null` when the files cannot be listed'
  })),
  size_bytes: nullable(
    Type.Integer({ minimum: 0, description: 'Of all files together; `null` when they cannot be listed' })
  ),
  file_count: nullable(Type.Integer({ minimum: 0, description: '`null` when the files cannot be listed' })),
  valid: Type.Boolean({ description: 'Whether the Agent Skills format accepts the skill: the verdict of `spec`' }),
  tokens: TokenEstimateSchema,
  targets: Type.Optional(
    Type.Array(TargetVerdictSchema, { description: 'With `target`: what each of them does with the skill' })
  ),
  findings: Type.Array(FindingSchema, { description: 'What the author should know, in the order in which to fix it' }),
  trust: Type.Optional(TrustSchema),
  score: Type.Optional(
    Type.Number({ description: 'With `q`: higher is better; comparable within one answer only' })
  )
})), EXAMPLE_ENTRY)

export const CatalogPageSchema = named('CatalogPage', Type.Object({
  skills: Type.Array(Type.Unsafe<CatalogEntry>(reference(CatalogEntrySchema)), {
    description: 'Sorted by name; with `q` by score, and by name where that is equal'
  }),
  total: Type.Integer({ minimum: 0, description: 'Number of entries on all pages together' }),
  next_cursor: nullable(Type.String({ description: 'Gets the next page; `null` on the last one' }))
}), { skills: [EXAMPLE_ENTRY], total: 6, next_cursor: 'ZjM4ZGZiNmVmMGUxYjZlZQoKY2FsY3VsYXRvcg' })
