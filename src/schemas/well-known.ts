import { Type } from '@sinclair/typebox'
import { VALID_NAME } from '../core/format/fields.ts'
import { MAX_NAME_CODE_POINTS } from '../core/shared/limits.ts'
import { named, StringEnum } from './typebox.ts'

/** Identifier of version 0.2.0. Clients compare it; nobody fetches it. */
export const DISCOVERY_SCHEMA_ID = 'https://schemas.agentskills.io/discovery/0.2.0/schema.json'

const EXAMPLE_HEX = '0123456789abcdef'.repeat(4)
const EXAMPLE_DESCRIPTION = 'Basic arithmetic with exact decimal results'

const NameSchema = Type.String({
  description: 'Name of the skill',
  pattern: VALID_NAME.source,
  maxLength: MAX_NAME_CODE_POINTS
})
const DescriptionSchema = Type.String({ description: 'That of the frontmatter', minLength: 1 })

/** Discovery 0.2.0 §3. */
export const DiscoveryIndexSchema = Type.Object({
  $schema: Type.Literal(DISCOVERY_SCHEMA_ID),
  skills: Type.Array(Type.Object({
    name: NameSchema,
    type: StringEnum(
      ['skill-md', 'archive'],
      { description: '`skill-md` is a skill that is one SKILL.md, `archive` the ZIP archive of one with more files' }
    ),
    description: DescriptionSchema,
    url: Type.String({ description: 'Address of the artifact, relative to the index; contains the digest' }),
    digest: Type.String({ pattern: '^sha256:[0-9a-f]{64}$', description: 'SHA-256 of the artifact' })
  }))
}, {
  $id: 'DiscoveryIndex',
  title: 'DiscoveryIndex'
})

export const DISCOVERY_EXAMPLE = {
  $schema: DISCOVERY_SCHEMA_ID,
  skills: [{
    name: 'calculator',
    type: 'archive',
    description: EXAMPLE_DESCRIPTION,
    url: `calculator/${EXAMPLE_HEX}/archive.zip`,
    digest: `sha256:${EXAMPLE_HEX}`
  }]
}

/** Discovery 0.1.0. */
export const LegacyDiscoveryIndexSchema = named('LegacyDiscoveryIndex', Type.Object({
  skills: Type.Array(Type.Object({
    name: NameSchema,
    description: DescriptionSchema,
    version: Type.String({
      description: 'The revision of the skill. Some clients fetch the files again only after it has changed'
    }),
    files: Type.Array(Type.String(), { minItems: 1, description: 'All files of the skill, `SKILL.md` first' })
  }))
}), {
  skills: [{
    name: 'calculator',
    description: EXAMPLE_DESCRIPTION,
    version: `sha256:${EXAMPLE_HEX}`,
    files: ['SKILL.md', 'examples/basic.py']
  }]
})

const NameParamSchema = Type.String({ description: 'Name of a skill that the index lists', examples: ['calculator'] })

export const ArtifactParamsSchema = Type.Object({
  name: NameParamSchema,
  digest: Type.String({ description: 'SHA-256 of the artifact in the index, in hexadecimal', examples: [EXAMPLE_HEX] })
})

export const SkillIndexParamsSchema = Type.Object({ name: NameParamSchema })

/** The wildcard is called `path` in the OpenAPI document, `*` by the router. */
export const LegacyFileParamsSchema = Type.Object({
  name: NameParamSchema,
  '*': Type.String({ description: 'Path of a file, as the index lists it', examples: ['SKILL.md'] })
})

export const SkillLegacyFileParamsSchema = Type.Object({
  name: NameParamSchema,
  skill: Type.String({ description: 'The same name, as the index has it', examples: ['calculator'] }),
  '*': LegacyFileParamsSchema.properties['*']
})
