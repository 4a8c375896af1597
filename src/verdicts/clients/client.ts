import { preventsUse } from '../../core/format/findings.ts'
import type { ConditionName } from '../conditions.ts'
import { type FindingCode, FINDINGS } from '../findings.ts'

/** Outcomes of a skill in a client, the mildest first. A verdict is the worst outcome of all findings. */
export const OUTCOMES = ['ok', 'warned', 'changed', 'cut', 'not_loaded', 'refused'] as const

export type Outcome = typeof OUTCOMES[number]

/** Group of clients that mostly agree. */
export const GROUPS = ['validators', 'uploads', 'agents', 'indexes'] as const

/** Code of a finding that has an outcome, with its condition on the skill, if there is one. */
type Rule = FindingCode | { readonly code: FindingCode, readonly when: ConditionName }

/** A consumer of skills, and its documented rules: a format, a validator, an agent, an upload service, an index. */
export interface Client {
  readonly title: string
  /** Source of the rules, with its version. */
  readonly source: string
  /** Day on which the rules were read: clients change monthly. */
  readonly read: string
  readonly group?: typeof GROUPS[number]
  /** Findings that lead to each outcome. A skill without any of them is `ok`. */
  readonly outcomes: Readonly<Partial<Record<Exclude<Outcome, 'ok'>, readonly Rule[]>>>
}

/** Makes rules with a condition on the skill. */
export function when (condition: ConditionName, ...codes: readonly FindingCode[]): readonly Rule[] {
  return codes.map((code) => ({ code, when: condition }))
}

type Codes = readonly FindingCode[]

/** No main file can be read. */
export const NO_MAIN_FILE = [
  'main_file_missing', 'main_file_not_a_file', 'main_file_permission_denied', 'main_file_unreadable',
  'main_file_not_utf8', 'main_file_link_text'
] as const satisfies Codes

/** There is no frontmatter anywhere. */
export const NO_FRONTMATTER = [
  'frontmatter_missing', 'frontmatter_unclosed', 'frontmatter_empty', 'frontmatter_not_mapping', 'fence_unusual'
] as const satisfies Codes

/** Codes for a file that does not begin with frontmatter. */
export const NO_FRONTMATTER_FIRST =
  [...NO_FRONTMATTER, 'frontmatter_not_first', 'line_ends_cr'] as const satisfies Codes

/** YAML that our parser refuses: no client that reads YAML is said to load it. */
export const NO_YAML = ['yaml_invalid', 'yaml_refused', 'yaml_repaired'] as const satisfies Codes

/** Codes for the lack of what most clients need: a SKILL.md that begins with frontmatter in YAML. */
export const NO_SKILL =
  [...NO_MAIN_FILE, 'main_file_casing', ...NO_FRONTMATTER_FIRST, ...NO_YAML] as const satisfies Codes

export const NAME_RULES =
  ['name_too_long', 'name_invalid_characters', 'name_edge_hyphen', 'name_double_hyphen'] as const satisfies Codes

/** Findings that keep this service from offering a skill. */
export const UNUSABLE = (Object.keys(FINDINGS) as FindingCode[])
  .filter((code) => preventsUse({ code, severity: FINDINGS[code][0] }))
