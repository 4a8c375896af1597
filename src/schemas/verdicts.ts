import { Type } from '@sinclair/typebox'
import type { Finding } from '../core/shared/skill.ts'
import type { TargetVerdict } from '../verdicts/client-verdicts.ts'
import { OUTCOMES, TARGET_NAMES } from '../verdicts/targets.ts'
import { TOKEN_METHOD, type TokenEstimate } from '../verdicts/tokens.ts'
import { describes, named, nullable, StringEnum } from './typebox.ts'

export const TargetQuerySchema = Type.Optional(Type.String({
  description: `What to validate the skill for: ${TARGET_NAMES.map((name) => `\`${name}\``).join(', ')}, several ` +
    'with commas between them, or `all`. The chosen targets decide on severities'
}))

export const FindingSchema = describes<Finding>()(Type.Object({
  code: Type.String({ description: 'Stable name of the kind of finding' }),
  severity: StringEnum(['error', 'warning', 'info']),
  message: Type.String({ description: 'What is wrong' }),
  fix: Type.String({ description: 'How to fix it' }),
  field: Type.Optional(Type.String({ description: 'The frontmatter field that it is about' })),
  file: Type.Optional(Type.String({ description: 'The file that it is about, relative to the skill' })),
  line: Type.Optional(Type.Integer({ minimum: 1, description: 'Line in that file' })),
  column: Type.Optional(Type.Integer({ minimum: 1, description: 'Column in that line, in UTF-16 code units' })),
  targets: Type.Optional(
    Type.Array(Type.String(), { description: 'The targets that it matters to; absent if it matters to every reader' })
  )
}))

export const TargetVerdictSchema = describes<TargetVerdict>()(Type.Object({
  target: StringEnum(TARGET_NAMES),
  verdict: StringEnum(
    OUTCOMES, { description: 'What the target does with the skill: the worst outcome of its findings' }
  ),
  because: Type.Optional(Type.Array(Type.String(), { description: 'Codes of the findings that the verdict rests on' })),
  read: Type.String({ description: "The day on which the target's rules were read" })
}))

export const TokenEstimateSchema = describes<TokenEstimate>()(Type.Object({
  listed: Type.Integer({ minimum: 0, description: 'Name and description: what a list costs in each turn' }),
  body: nullable(Type.Integer({ minimum: 0, description: 'The body; `null` when SKILL.md cannot be read' })),
  all_files: nullable(Type.Integer({ minimum: 0, description: 'All text files; `null` when they cannot be listed' })),
  method: Type.String({ description: 'How the estimates were made' })
}, { description: 'About how many tokens the skill costs a model' }))

export const ValidateQuerySchema = Type.Object({
  folder: Type.Optional(Type.String({
    description: "The name of the skill's folder. Without it, that of the folder in the ZIP, or the name in the " +
      'frontmatter'
  })),
  target: TargetQuerySchema
})

export const ValidationSchema = named('Validation', Type.Object({
  skill_name: Type.String({ description: 'The name of its folder' }),
  revision: nullable(Type.String({ description: '`null`: of a skill that was sent, only SKILL.md is unpacked' })),
  valid: Type.Boolean({ description: 'Whether the Agent Skills format accepts the skill: the verdict of `spec`' }),
  tokens: TokenEstimateSchema,
  targets: Type.Array(
    TargetVerdictSchema, { description: 'What each chosen target does with the skill; without a choice, the format' }
  ),
  findings: Type.Array(FindingSchema, { description: 'What the author should know, one for each mistake' })
}), {
  skill_name: 'demo',
  revision: null,
  valid: false,
  tokens: { listed: 12, body: 450, all_files: null, method: TOKEN_METHOD },
  targets: [{ target: 'spec', verdict: 'refused', because: ['name_folder_mismatch'], read: '2026-11-22' }],
  findings: [{
    code: 'name_folder_mismatch',
    severity: 'error',
    message: "name 'other' does not match the folder name 'demo'",
    fix: "Change name to 'demo'",
    field: 'name',
    file: 'SKILL.md',
    line: 2,
    column: 7,
    targets: ['spec', 'skills-ref', 'claude-code', 'vscode', 'gh-skill', 'mcp', 'discovery-0.1.0', 'discovery-0.2.0']
  }]
})
