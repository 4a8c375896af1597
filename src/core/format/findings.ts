import { grouped as n, quote } from '../shared/text.ts'
import * as limits from '../shared/limits.ts'
import type { Finding, FindingSeverity } from '../shared/skill.ts'

/** Most names that are listed in a sentence. Further ones are counted. */
const MAX_LISTED_NAMES = 3

/** Severity and meaning of each kind of finding. `error`: the Agent Skills format refuses the skill. */
type FindingTable<Code extends string> = Readonly<Record<Code, readonly [severity: FindingSeverity, summary: string]>>

/** Kinds for clients are in src/verdicts, those of signatures in src/trust. */
export const FINDINGS = {
  main_file_missing: ['error', 'there is no SKILL.md'],
  main_file_not_a_file: ['error', 'SKILL.md is a folder, a device, or a link that leaves the skill'],
  main_file_too_large: ['error', `SKILL.md has more than ${n(limits.MAX_MAIN_FILE_BYTES)} bytes`],
  main_file_permission_denied: ['error', 'the service has no permission to read the folder or SKILL.md'],
  main_file_unreadable: ['error', 'the disk failed'],
  main_file_not_utf8: ['error', 'SKILL.md is not valid UTF-8'],
  main_file_ambiguous: ['warning', 'several main files differ only in case'],
  main_file_link_text: ['error', 'SKILL.md contains the path of a symbolic link as text'],
  main_file_casing: ['error', 'the main file is not spelt SKILL.md'],
  shadowed: ['warning', 'this skill hides those of the same name in later roots'],

  frontmatter_missing: ['error', 'SKILL.md is empty or has no frontmatter'],
  frontmatter_not_first: ['error', 'there is text before the frontmatter'],
  frontmatter_unclosed: ['error', 'there is no closing `---`'],
  frontmatter_empty: ['error', 'there is nothing between the fences'],
  frontmatter_not_mapping: ['error', 'the frontmatter does not consist of fields'],
  frontmatter_too_large: ['error', `the frontmatter has more than ${n(limits.MAX_FRONTMATTER_BYTES)} bytes`],
  fence_unusual: ['error', 'the first line begins with `---` and goes on'],
  line_ends_cr: ['error', 'lines end with a bare carriage return'],
  yaml_invalid: ['error', 'a part of the frontmatter is not YAML and was not read'],
  yaml_refused: ['error',
    `a part of the frontmatter has aliases, or is nested more than ${n(limits.MAX_FRONTMATTER_DEPTH)} levels deep`],
  yaml_not_portable: ['warning', 'readers of YAML take a part of the frontmatter in different ways, or refuse it'],
  yaml_repaired: ['error', 'a value is not valid YAML and was read as intended'],

  name_missing: ['error', 'there is no `name`'],
  name_not_text: ['error', '`name` is not text'],
  name_too_long: ['error', `\`name\` has more than ${n(limits.MAX_NAME_CODE_POINTS)} characters`],
  name_invalid_characters: ['error', '`name` has characters other than lowercase letters, numbers and hyphens'],
  name_edge_hyphen: ['error', '`name` starts or ends with a hyphen'],
  name_double_hyphen: ['error', '`name` has two hyphens in a row'],
  name_folder_mismatch: ['error', '`name` is not the name of the folder'],
  name_prefixed: ['info', '`name` lacks the prefix that the configuration of its source has'],
  name_reserved_word: ['info', 'one provider refuses such a name in uploads'],
  description_missing: ['error', 'there is no `description`'],
  description_not_text: ['error', '`description` is not text'],
  description_too_long: ['error', `\`description\` has more than ${n(limits.MAX_DESCRIPTION_CODE_POINTS)} characters`],
  description_xml_tag: ['info', '`description` has what looks like an XML tag'],
  license_not_text: ['warning', '`license` is not text'],
  compatibility_not_text: ['error', '`compatibility` is not text'],
  compatibility_empty: ['warning', '`compatibility` is empty'],
  compatibility_too_long: ['error',
    `\`compatibility\` has more than ${n(limits.MAX_COMPATIBILITY_CODE_POINTS)} characters`],
  metadata_not_mapping: ['error', '`metadata` is not a mapping'],
  metadata_not_text: ['warning', '`metadata` has values that are not text'],
  allowed_tools_not_text: ['warning', '`allowed-tools` is neither text nor a list'],
  allowed_tools_list: ['warning', '`allowed-tools` is a list instead of text'],
  allowed_tools_commas: ['info', '`allowed-tools` separates tools with commas instead of spaces'],
  unknown_fields: ['info', 'the frontmatter has fields that the format does not know'],

  body_empty: ['warning', 'there is nothing after the frontmatter'],
  line_ends_crlf: ['info', 'SKILL.md ends its lines with CRLF'],
  many_lines: ['info', `SKILL.md has more than ${n(limits.ADVISED_MAIN_FILE_LINES)} lines`],
  control_characters: ['warning', 'SKILL.md has control characters, which a person does not see'],
  zero_width_characters: ['warning', 'SKILL.md has zero-width characters, which a person does not see'],
  bidi_control_characters: ['warning', 'SKILL.md has characters that change the direction of text'],
  hidden_tag_characters: ['warning', 'SKILL.md has invisible tag characters, which a model reads'],

  link_outside: ['warning', 'links that lead to no file of the skill are skipped'],
  link_to_folder: ['warning', 'links to folders are skipped'],
  ignore_file_unusable: ['warning', 'a `.skillignore` cannot be used, so that only the main file is served'],
  file_special: ['warning', 'files that are not regular files are skipped'],
  file_unreadable: ['warning', 'files and folders that the server has no permission to read are skipped'],
  file_path_too_long: ['warning', 'files and folders whose paths are too long for the system are skipped'],
  file_name_not_utf8: ['warning', 'files whose names are not UTF-8 are skipped'],
  file_program: ['info', 'the skill has compiled programs, which nobody can review'],
  file_archive: ['info', 'the skill has archives, whose content is not checked'],
  file_type_mismatch: ['warning', 'files have another type than their names say'],
  too_many_files: ['warning',
    `no revision, manifest and archive: the skill has more than ${n(limits.MAX_SKILL_ENTRIES)} files and folders`],
  too_many_bytes: ['warning',
    `no revision, manifest and archive: the files of the skill have more than ${n(limits.MAX_SKILL_BYTES)} bytes`],
  revision_pending: ['info', 'no revision yet: the files of the skill are being read, or are written without pause']
} as const satisfies FindingTable<string>

export type FindingCode = keyof typeof FINDINGS

/** Errors of the format that most agents tolerate: models are offered the skill all the same. */
const USABLE_WITH: ReadonlySet<string> = new Set<FindingCode>([
  'main_file_casing', 'yaml_repaired', 'compatibility_not_text', 'compatibility_too_long', 'metadata_not_mapping'
])

/** Whether a finding hides a skill from models: in tools, prompts, MCP and discovery. */
export function preventsUse ({ code, severity }: Pick<Finding, 'code' | 'severity'>): boolean {
  return severity === 'error' && !USABLE_WITH.has(code)
}

export function isUsable ({ findings }: { readonly findings: readonly Finding[] }): boolean {
  return !findings.some(preventsUse)
}

/** A place in a main file, counted from 1. Columns are UTF-16 code units. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** Returns the functions that create findings with the codes of a table. */
export function findingsIn<Code extends string> (table: FindingTable<Code>) {
  /** Creates a finding with the severity of its code. `position` is in the main file, if the rule knows it. */
  function finding (code: Code, message: string, fix: string, field?: string, position?: Position): Finding {
    const [severity] = table[code]
    return { code, severity, message, fix, ...field !== undefined && { field }, ...position }
  }

  /** Creates one finding that lists the first of these files; no finding without files. */
  function findingOnFiles (code: Code, paths: readonly string[], what: string, fix: string): Finding[] {
    const [file] = paths
    return file === undefined ? [] : [{ ...finding(code, `${what}: ${quoteList(paths)}`, fix), file }]
  }

  return { finding, findingOnFiles }
}

export const { finding, findingOnFiles } = findingsIn(FINDINGS)

/** Lists quoted names in a sentence: `'a', 'b', 'c' and 4 more`. */
export function quoteList (names: readonly string[]): string {
  const shown = names.slice(0, MAX_LISTED_NAMES).map(quote).join(', ')
  return names.length > MAX_LISTED_NAMES ? `${shown} and ${names.length - MAX_LISTED_NAMES} more` : shown
}
