import { Type } from '@sinclair/typebox'
import type { Manifest } from '../core/shared/skill.ts'
import type { TextEncoding } from '../core/read/decode.ts'
import { describes, named, StringEnum } from './typebox.ts'

const NameSchema = Type.String({
  description: "The skill's folder name, compared exactly: no case folding, no trimming",
  examples: ['calculator']
})

export const SkillNameParamsSchema = Type.Object({ name: NameSchema })

/** The wildcard is called `path` in the OpenAPI document, `*` by the router. */
export const SkillFileParamsSchema = Type.Object({
  name: NameSchema,
  '*': Type.String({
    description: 'Path of the file relative to the skill. May have slashes, as they are or as `%2F`; `.` and `..` ' +
      'are resolved, and must not leave the skill',
    examples: ['examples/basic.py']
  })
})

export const RevisionSchema = Type.Optional(Type.String({
  pattern: '^(?:current|sha256:[0-9a-f]{64})$',
  description: 'The revision of the skill that the answer has to be of, named in `Skill-Revision`; `current` for the ' +
    'present one. A revision that is neither present nor kept is 412 `revision_changed`. `If-Match` asks for the ' +
    'present one'
}))

/** Query parameters of every route about one skill. */
export const RevisionQuerySchema = Type.Object({ revision: RevisionSchema })

export const SkillFileQuerySchema = Type.Object({
  revision: RevisionSchema,
  encoding: Type.Optional(Type.Literal('base64', {
    description: 'JSON form only: the content as base64, whatever kind of file it is'
  }))
})

export const SkillArchiveQuerySchema = Type.Object({
  revision: RevisionSchema,
  wrap: Type.Optional(Type.Boolean({
    default: false,
    description: 'Whether everything is in one folder with the name of the skill'
  }))
})

export const SkillListSchema = named('SkillList', Type.Object({
  skills: Type.Array(Type.String(), { description: 'Names, sorted by code point' })
}), { skills: ['calculator', 'weather'] })

export const SkillDocumentSchema = named('SkillDocument', Type.Object({
  skill_name: Type.String(),
  documentation: Type.String({ description: 'The whole main file, frontmatter included, verbatim' })
}), { skill_name: 'calculator', documentation: '# Calculator Skill\n\nProvides basic arithmetic operations.\n' })

export const SkillFileSchema = named('SkillFile', Type.Object({
  success: Type.Literal(true),
  skill_name: Type.String(),
  file_path: Type.String({ description: 'The path as it was requested' }),
  content: Type.String({ description: 'The text, verbatim; base64 with ?encoding=base64' }),
  size_bytes: Type.Integer({ minimum: 0 }),
  encoding: describes<TextEncoding | 'base64'>()(StringEnum(['utf-8', 'utf-16le', 'utf-16be', 'latin-1', 'base64']))
}), {
  success: true,
  skill_name: 'calculator',
  file_path: 'examples/basic.py',
  content: 'def add(a, b):\n    return a + b\n',
  size_bytes: 32,
  encoding: 'utf-8'
})

export const DigestSchema = Type.String({ pattern: '^sha256:[0-9a-f]{64}$', description: 'SHA-256 of the bytes' })
export const EXAMPLE_DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`

export const SkillManifestSchema = named('SkillManifest', describes<Manifest>()(Type.Object({
  skill_name: Type.String(),
  revision: DigestSchema,
  files: Type.Array(Type.Object({
    path: Type.String(),
    size_bytes: Type.Integer({ minimum: 0 }),
    media_type: Type.String(),
    digest: DigestSchema
  }), { description: 'Sorted by path, without links that leave the skill' })
})), {
  skill_name: 'calculator',
  revision: EXAMPLE_DIGEST,
  files: [{ path: 'SKILL.md', size_bytes: 620, media_type: 'text/markdown', digest: EXAMPLE_DIGEST }]
})
