import { grouped as n, quote } from '../shared/text.ts'
import * as limits from '../shared/limits.ts'
import type { Finding, FindingSeverity } from '../shared/skill.ts'

/** Names in a sentence before it only says how many more there are. */
const MAX_LISTED_NAMES = 3

/**
 * Every kind of finding: its severity, and what it says of a skill. Where clients decide, the severity is that of the
 * Agent Skills format: `error` means that the format refuses the skill. docs/validate.md lists them all.
 */
export const FINDINGS = {
  main_file_missing: ['error', 'there is no SKILL.md'],
  main_file_not_a_file: ['error', 'SKILL.md is a folder, a device, or a link that leaves the skill'],
  main_file_too_large: ['error', `SKILL.md has more than ${n(limits.MAX_MAIN_FILE_BYTES)} bytes`],
  main_file_permission_denied: ['error', 'the service may not read the folder or SKILL.md'],
  main_file_unreadable: ['error', 'the disk failed'],
  main_file_not_utf8: ['error', 'SKILL.md is not valid UTF-8'],
  main_file_ambiguous: ['warning', 'several main files differ only in case'],
  main_file_link_text: ['error', 'SKILL.md holds the path of a symbolic link as text'],
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
  yaml_repaired: ['error', 'a value is not valid YAML and was read as intended'],
  half_character: ['warning', 'an escape stands for half a character, which is served as U+FFFD'],
  text_ambiguous: ['info', '`name` or `description` is not text to some readers of YAML'],

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
  description_angle_bracket: ['info', '`description` has an angle bracket'],
  description_block_scalar: ['info', '`description` is written as a block, behind `|` or `>`'],
  description_not_one_line: ['info', '`description` has several lines'],
  when_to_use_too_long: ['info',
    '`description` and `when_to_use` together have more than ' +
    `${n(limits.MAX_CLAUDE_LISTING_CHARACTERS)} characters`],
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
  frontmatter_flow_style: ['info', 'the frontmatter has a list or mapping in brackets'],
  tab_in_value: ['info', 'a value without quotes has a tab'],
  anchor_or_tag: ['info', 'a value has an anchor or a tag'],
  escaped_surrogates: ['info', 'a character is written as two `\\u` escapes'],
  nobody_can_invoke: ['info', 'neither a model nor a user may invoke the skill'],
  vendored_copy: ['info', 'the skill is a copy that an installer made'],

  body_empty: ['warning', 'there is nothing after the frontmatter'],
  byte_order_mark: ['info', 'SKILL.md begins with a byte order mark'],
  line_ends_crlf: ['info', 'SKILL.md ends its lines with CRLF'],
  body_placeholder: ['info', 'the body has placeholders that only Claude Code fills in'],
  body_link_missing: ['warning', 'the body refers to files that the skill does not have'],
  body_link_outside: ['warning', 'the body links to files outside the skill'],
  secret_in_text: ['warning', 'SKILL.md has what looks like a key or a token'],
  encoded_text: ['info', 'SKILL.md has more than 1 KiB of encoded data in a row'],
  download_to_shell: ['info', 'SKILL.md has a command that hands a download to a shell'],
  many_lines: ['info', `SKILL.md has more than ${n(limits.ADVISED_MAIN_FILE_LINES)} lines`],
  control_characters: ['warning', 'SKILL.md has control characters, which a person does not see'],
  zero_width_characters: ['warning', 'SKILL.md has zero-width characters, which a person does not see'],
  bidi_control_characters: ['warning', 'SKILL.md has characters that change the direction of text'],
  hidden_tag_characters: ['warning', 'SKILL.md has invisible tag characters, which a model reads'],

  link_outside: ['warning', 'links that lead to no file of the skill are left out'],
  link_to_folder: ['warning', 'links to folders are left out'],
  ignore_file_unusable: ['warning', 'a `.skillignore` cannot be used, so that only the main file is served'],
  file_special: ['warning', 'FIFOs, sockets and devices are left out'],
  file_unreadable: ['warning', 'files and folders that the service may not read are left out'],
  file_path_too_long: ['warning', 'files and folders whose paths are too long for the system are left out'],
  file_name_not_utf8: ['warning', 'files whose names are not UTF-8 are left out'],
  file_names_collide: ['warning', 'files or folders differ only in case, or in how characters are composed'],
  file_name_not_portable: ['info', 'files have names that Windows cannot write'],
  file_program: ['info', 'the skill has compiled programs'],
  file_archive: ['info', 'the skill has archives, whose contents are not checked'],
  file_type_mismatch: ['warning', 'the bytes of files are not what their names say'],
  too_many_files: ['warning',
    `no revision, manifest and archive: the skill has more than ${n(limits.MAX_SKILL_ENTRIES)} files and folders`],
  too_many_bytes: ['warning',
    `no revision, manifest and archive: the files of the skill have more than ${n(limits.MAX_SKILL_BYTES)} bytes`],
  nested_skills: ['info', 'a folder inside the skill is a skill itself'],
  upload_too_large: ['info', `the skill is larger than uploads take: ${n(limits.MAX_UPLOAD_BYTES)} bytes, ` +
    `${n(limits.MAX_UPLOAD_FILES)} files, ${n(limits.MAX_UPLOAD_FILE_BYTES)} bytes in a file`],
  revision_pending: ['info', 'no revision yet: the files of the skill are being read, or are written without pause'],

  unsigned: ['info', 'the skill has no signature'],
  signature_stale: ['warning', 'files were changed, added or removed after the skill was signed'],
  signature_exempt: ['info', 'the signature leaves files out'],
  signature_untrusted: ['warning', 'the signer is not in the trust file'],
  signature_expired: ['warning', 'the certificate of the signer has expired, or is not valid yet'],
  signature_expires_soon: ['info', 'the certificate of the signer expires within 30 days'],
  signature_invalid: ['warning', 'the signature cannot be read, or is not one of this content'],
  trust_denied: ['warning', 'the trust file denies the revision or its signer'],
  scan_result: ['warning', 'a scanner reports something of medium or higher severity'],
  scan_note: ['info', 'a scanner reports something of low severity'],
  scan_missing: ['warning', 'the trust file asks for a scan, and there is none of this revision that is recent enough'],
  trust_unchecked: ['warning', 'the skill could not be checked'],
  not_pinned: ['warning', 'the lock does not name the skill'],
  pin_mismatch: ['warning', 'the lock names another revision of the skill'],

  mcp_skill_invalid: ['info', 'MCP does not list the skill: it has errors'],
  mcp_refused: ['info', 'MCP does not list the skill: the official client refuses its frontmatter'],
  mcp_main_file_casing: ['info', 'MCP does not list the skill: the main file is not called SKILL.md'],
  mcp_file_too_large: ['info',
    `MCP does not list the skill: a file has more than ${n(limits.MAX_TEXT_FILE_BYTES)} bytes`],
  mcp_too_many_files: ['info', `MCP does not list the skill: it has more than ${n(limits.MAX_MCP_LISTED_FILES)} files`],
  mcp_limits_exceeded: ['info', 'MCP hosts may decline the skill: it has more than ' +
    `${n(limits.MCP_ADVISED_SKILL_FILES)} files or ${n(limits.MCP_ADVISED_SKILL_BYTES)} bytes`],

  discovery_skill_invalid: ['info', 'in no discovery index: the skill has errors'],
  discovery_main_file_missing: ['info', 'in no discovery index: SKILL.md cannot be read'],
  discovery_main_file_ambiguous: ['info', 'in no discovery index: several main files differ only in case'],
  discovery_frontmatter_repaired: ['info', 'in no discovery index: the frontmatter is not valid YAML as it stands'],
  discovery_frontmatter_differs: ['info', 'in no discovery index: clients find no frontmatter, or another end of it'],
  discovery_path_unsafe: ['info', 'in no discovery index: a path has a backslash, or begins like a drive'],
  discovery_path_not_plain: ['info', 'not in the discovery index 0.1.0: it cannot name a path of the skill'],
  discovery_description_too_long: ['info', 'not in the discovery index 0.2.0: ' +
    `\`description\` has more than ${n(limits.MAX_DISCOVERY_DESCRIPTION_UNITS)} UTF-16 units`],
  discovery_archive_too_large: ['info', 'not in the discovery index 0.2.0: more than ' +
    `${n(limits.MAX_DISCOVERY_FILES)} files or ${n(limits.MAX_DISCOVERY_UNPACKED_BYTES)} bytes`],
  discovery_file_large: ['info',
    `one client of the discovery index 0.1.0 cuts files after ${n(limits.ADVISED_DISCOVERY_FILE_BYTES)} bytes`],
  discovery_internal: ['info', 'some clients of the discovery indexes show the skill only when asked for by its name']
} as const satisfies Record<string, readonly [severity: FindingSeverity, summary: string]>

export type FindingCode = keyof typeof FINDINGS

/** Errors of the format that do not keep most agents from using a skill: models are offered it all the same. */
const USABLE_WITH: ReadonlySet<string> = new Set<FindingCode>([
  'main_file_casing', 'yaml_repaired', 'compatibility_not_text', 'compatibility_too_long', 'metadata_not_mapping'
])

/** Whether a finding keeps a skill from being offered to models: in tools, prompts, MCP and discovery. */
export function preventsUse ({ code, severity }: Pick<Finding, 'code' | 'severity'>): boolean {
  return severity === 'error' && !USABLE_WITH.has(code)
}

/** Whether models are offered a skill with these findings. It may break rules of the format that readers get over. */
export function isUsable ({ findings }: { readonly findings: readonly Finding[] }): boolean {
  return !findings.some(preventsUse)
}

/** Where something is in a main file, counted from 1. A column counts UTF-16 code units. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** Makes a finding with the severity of its code, at a position in the main file where the rule knows it. */
export function finding (
  code: FindingCode, message: string, fix: string, field?: string, position?: Position
): Finding {
  const [severity] = FINDINGS[code]
  return { code, severity, message, fix, ...field !== undefined && { field }, ...position }
}

/** What is to be said of files, with the first names, at the first of the files; nothing without any. */
export function findingOnFiles (code: FindingCode, paths: readonly string[], what: string, fix: string): Finding[] {
  const [file] = paths
  return file === undefined ? [] : [{ ...finding(code, `${what}: ${quoteList(paths)}`, fix), file }]
}

/** Names for use inside a sentence: `'a', 'b', 'c' and 4 more`. */
export function quoteList (names: readonly string[]): string {
  const shown = names.slice(0, MAX_LISTED_NAMES).map(quote).join(', ')
  return names.length > MAX_LISTED_NAMES ? `${shown} and ${names.length - MAX_LISTED_NAMES} more` : shown
}
