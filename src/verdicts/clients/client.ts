import { preventsUse } from '../../core/format/findings.ts'
import type { ConditionName } from '../conditions.ts'
import { type FindingCode, FINDINGS } from '../findings.ts'

/** What a client does with a skill, the mildest first. A verdict is the worst outcome of all findings. */
export const OUTCOMES = ['ok', 'warned', 'changed', 'cut', 'not_loaded', 'refused'] as const

export type Outcome = typeof OUTCOMES[number]

/** Clients that mostly agree. */
export const GROUPS = ['validators', 'uploads', 'agents', 'indexes'] as const

/** A finding that has an outcome, and the fact about the skill that it needs, if it needs one. */
type Rule = FindingCode | { readonly code: FindingCode, readonly when: ConditionName }

/** A consumer of skills, and its documented rules: a format, a validator, an agent, an upload service, an index. */
export interface Client {
  readonly title: string
  /** What the rules were read from, with its version. */
  readonly source: string
  /** The day on which they were read: clients change monthly. */
  readonly read: string
  readonly group?: typeof GROUPS[number]
  /** Other names that a caller may use. */
  readonly aliases?: readonly string[]
  /** What it does with a skill that has one of these findings. It takes all others. */
  readonly outcomes: Readonly<Partial<Record<Exclude<Outcome, 'ok'>, readonly Rule[]>>>
}

/** Makes rules that need a fact about the skill. */
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

/** The frontmatter is not where it has to be. */
export const NO_FRONTMATTER_FIRST =
  [...NO_FRONTMATTER, 'frontmatter_not_first', 'line_ends_cr'] as const satisfies Codes

/** YAML that our parser refuses: no client that reads YAML is said to load it. */
export const NO_YAML = ['yaml_invalid', 'yaml_refused', 'yaml_repaired'] as const satisfies Codes

/** What most clients need: a SKILL.md that begins with a frontmatter of YAML. */
export const NO_SKILL =
  [...NO_MAIN_FILE, 'main_file_casing', ...NO_FRONTMATTER_FIRST, ...NO_YAML] as const satisfies Codes

/** The form of a name. */
export const NAME_RULES =
  ['name_too_long', 'name_invalid_characters', 'name_edge_hyphen', 'name_double_hyphen'] as const satisfies Codes

/** Findings that keep this service from offering a skill. */
export const UNUSABLE = (Object.keys(FINDINGS) as FindingCode[])
  .filter((code) => preventsUse({ code, severity: FINDINGS[code][0] }))
