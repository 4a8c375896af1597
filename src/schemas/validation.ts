import { Type } from '@sinclair/typebox'
import { TOKEN_METHOD } from '../verdicts/tokens.ts'
import { named, nullable } from './typebox.ts'
import { FindingSchema, TargetQuerySchema, TargetVerdictSchema, TokenEstimateSchema } from './verdicts.ts'

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
  valid: Type.Boolean({ description: 'Whether the Agent Skills format takes the skill: the verdict of `spec`' }),
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
