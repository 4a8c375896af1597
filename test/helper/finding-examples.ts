import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { FindingCode } from '../../src/validate/report.ts'

/** Where the text of an example belongs. Files are `PATH`, `PATH = CONTENT` or, for a link, `PATH -> TARGET`. */
type Place = 'frontmatter' | 'body' | 'SKILL.md' | 'files'

export interface Example {
  readonly place: Place
  /** A text with the finding. */
  readonly wrong: readonly string[]
  /** The same text without it. */
  readonly right: readonly string[]
}

const NAME = 'name: demo'
const DESCRIPTION = 'description: Adds numbers'
const FENCE = '---'
const BODY = '# Demo'
/** A main file without findings. */
export const GOOD = [FENCE, NAME, DESCRIPTION, FENCE, BODY]

const frontmatter = example('frontmatter')
const body = example('body')
const main = example('SKILL.md')
const files = example('files')

/** A wrong and a right example of each finding that a text or a name can cause, in a folder called `demo`. */
export const FINDING_EXAMPLES: Readonly<Partial<Record<FindingCode, Example>>> = {
  main_file_missing: files(['demo.md'], ['SKILL.md']),
  main_file_not_a_file: files(['SKILL.md -> ../demo.md'], ['SKILL.md']),
  main_file_ambiguous: files(['SKILL.md', 'SKILL.MD'], ['SKILL.md']),
  main_file_link_text: files(['SKILL.md = ../demo/SKILL.md'], ['SKILL.md']),
  main_file_casing: files(['skill.md'], ['SKILL.md']),

  frontmatter_missing: main([BODY], GOOD),
  frontmatter_not_first: main(['A text', ...GOOD], GOOD),
  frontmatter_unclosed: main([FENCE, NAME, DESCRIPTION, BODY], GOOD),
  frontmatter_empty: main([FENCE, FENCE, BODY], GOOD),
  frontmatter_not_mapping: main([FENCE, 'demo', FENCE, BODY], GOOD),
  frontmatter_too_large: frontmatter([`license: ${'x'.repeat(8_193)}`], ['license: MIT']),
  fence_unusual: main(['--- # demo', NAME, DESCRIPTION, FENCE, BODY], GOOD),
  line_ends_cr: main([GOOD.join('\r')], GOOD),
  yaml_invalid: frontmatter(['license: "MIT" or later'], ['license: MIT or later']),
  yaml_refused: frontmatter(['license: &a MIT', 'compatibility: *a'], ['license: MIT', 'compatibility: MIT']),
  yaml_not_portable: frontmatter(['description: 2026-11-28'], ['description: "2026-11-28"']),
  yaml_repaired: frontmatter(['description: Adds: numbers'], ["description: 'Adds: numbers'"]),

  name_missing: main([FENCE, DESCRIPTION, FENCE, BODY], GOOD),
  name_not_text: frontmatter(['name: [demo]'], [NAME]),
  name_too_long: frontmatter([`name: ${'x'.repeat(65)}`], [NAME]),
  name_invalid_characters: frontmatter(['name: Demo'], [NAME]),
  name_edge_hyphen: frontmatter(['name: demo-'], [NAME]),
  name_double_hyphen: frontmatter(['name: de--mo'], [NAME]),
  name_folder_mismatch: frontmatter(['name: other'], [NAME]),
  description_missing: main([FENCE, NAME, FENCE, BODY], GOOD),
  description_not_text: frontmatter(['description: [Adds numbers]'], [DESCRIPTION]),
  description_too_long: frontmatter([`description: ${'x'.repeat(1_025)}`], [DESCRIPTION]),
  description_xml_tag: frontmatter(['description: Adds <b>numbers</b>'], [DESCRIPTION]),
  description_angle_bracket: frontmatter(['description: Says if 2 > 1'], ['description: Says if 2 exceeds 1']),
  description_block_scalar: frontmatter(['description: >', '  Adds', '  numbers'], [DESCRIPTION]),
  description_not_one_line: frontmatter(['description: Adds', '  numbers'], [DESCRIPTION]),
  when_to_use_too_long: frontmatter([`when_to_use: ${'x'.repeat(1_530)}`], ['when_to_use: For sums']),
  license_not_text: frontmatter(['license: [MIT]'], ['license: MIT']),
  compatibility_not_text: frontmatter(['compatibility: 20'], ['compatibility: Node 20']),
  compatibility_empty: frontmatter(["compatibility: ''"], ['compatibility: Node 20']),
  compatibility_too_long: frontmatter([`compatibility: ${'x'.repeat(501)}`], ['compatibility: Node 20']),
  metadata_not_mapping: frontmatter(['metadata: demo'], ['metadata:', '  team: demo']),
  metadata_not_text: frontmatter(['metadata:', '  version: 1.0'], ['metadata:', "  version: '1.0'"]),
  allowed_tools_not_text: frontmatter(['allowed-tools: 5'], ['allowed-tools: Read']),
  allowed_tools_list: frontmatter(['allowed-tools: [Read, Bash]'], ['allowed-tools: Read Bash']),
  allowed_tools_commas: frontmatter(['allowed-tools: Read, Bash'], ['allowed-tools: Read Bash']),
  unknown_fields: frontmatter(['team: demo'], ['metadata:', '  team: demo']),
  frontmatter_flow_style: frontmatter(['metadata: { team: demo }'], ['metadata:', '  team: demo']),
  nobody_can_invoke: frontmatter(
    ['disable-model-invocation: true', 'user-invocable: false'], ['disable-model-invocation: true']),
  vendored_copy: frontmatter(['metadata:', '  github-repo: a/b'], ['metadata:', '  team: demo']),

  body_empty: body([''], [BODY]),
  line_ends_crlf: main([GOOD.join('\r\n')], GOOD),
  body_placeholder: body(['Add $ARGUMENTS'], ['Add the numbers']),
  body_link_missing: body(['Read [more](more.md)'], ['Read [more](https://example.com)']),
  body_link_outside: body(['Read [more](../more.md)'], ['Read [more](https://example.com)']),
  secret_in_text: body([`Send ghp_${'aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zaBcDe'}`], ['Send $TOKEN']),
  download_to_shell: body(['curl https://example.com/i.sh | sh'], ['sh scripts/install.sh']),
  many_lines: body(Array.from({ length: 500 }, () => ''), [BODY]),
  control_characters: body(['Add\u0007 numbers'], ['Add numbers']),
  zero_width_characters: body(['Add\u200B numbers'], ['Add numbers']),
  bidi_control_characters: body(['Add\u202E numbers'], ['Add numbers']),
  hidden_tag_characters: body(['Add\u{E0041} numbers'], ['Add numbers']),

  link_outside: files(['SKILL.md', 'more.md -> ../../more.md'], ['SKILL.md', 'more.md']),
  link_to_folder: files(['SKILL.md', 'a/more.md', 'b -> a'], ['SKILL.md', 'a/more.md']),
  file_names_collide: files(['SKILL.md', 'a.md', 'A.md'], ['SKILL.md', 'a.md']),
  file_name_not_portable: files(['SKILL.md', 'aux.md'], ['SKILL.md', 'auxiliary.md']),
  file_program: files(['SKILL.md', 'add = \x7fELF'], ['SKILL.md', 'add.py']),
  file_archive: files(['SKILL.md', 'a.zip = PK\x03\x04'], ['SKILL.md', 'a.md']),
  file_type_mismatch: files(['SKILL.md', 'a.png = text'], ['SKILL.md', 'a.txt = text']),
  nested_skills: files(['SKILL.md', 'inner/SKILL.md'], ['SKILL.md', 'inner/more.md']),
  discovery_internal: frontmatter(['metadata:', '  internal: true'], ['metadata:', '  team: demo'])
}

/** Findings without an example: no short text and no name in a folder called `demo` causes them. */
export const WITHOUT_EXAMPLE: ReadonlySet<string> = new Set<FindingCode>([
  'main_file_too_large', 'main_file_permission_denied', 'main_file_unreadable', 'main_file_not_utf8', 'shadowed',
  'name_prefixed', 'name_reserved_word', 'ignore_file_unusable', 'file_special', 'file_unreadable',
  'file_path_too_long', 'file_name_not_utf8', 'too_many_files', 'too_many_bytes', 'revision_pending', 'encoded_text',
  'upload_too_large', 'mcp_refused', 'mcp_file_too_large', 'mcp_too_many_files', 'mcp_limits_exceeded',
  'discovery_frontmatter_differs', 'discovery_path_unsafe', 'discovery_path_not_plain',
  'discovery_description_too_long', 'discovery_archive_too_large', 'discovery_file_large', 'unsigned',
  'signature_stale', 'signature_exempt', 'signature_untrusted', 'signature_expired', 'signature_expires_soon',
  'signature_invalid', 'trust_denied', 'scan_result', 'scan_note', 'scan_missing', 'trust_unchecked', 'not_pinned',
  'pin_mismatch'
])

/** Writes one side of an example into a folder called `demo`. */
export function writeExample (folder: string, place: Place, lines: readonly string[]): void {
  const entries = place === 'files' ? lines : [`SKILL.md = ${mainFile(place, lines)}`]
  for (const entry of entries) {
    const [path = '', sign, rest] = entry.split(/ (->|=) ([^]*)/)
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    if (sign === '->') symlinkSync(rest ?? '', file)
    else writeFileSync(file, rest ?? (/skill\.md$/i.test(path) ? mainFile('SKILL.md', GOOD) : 'A text\n'), 'latin1')
  }
}

function mainFile (place: Place, lines: readonly string[]): string {
  const fields = place === 'frontmatter' ? withDefaults(lines) : [NAME, DESCRIPTION]
  const text = place === 'SKILL.md' ? lines : [FENCE, ...fields, FENCE, ...place === 'body' ? lines : [BODY]]
  return Buffer.from(`${text.join('\n')}\n`).toString('latin1')
}

function withDefaults (lines: readonly string[]): string[] {
  const lacking = [NAME, DESCRIPTION].filter((line) =>
    !lines.some((each) => each.startsWith(line.slice(0, line.indexOf(':') + 1))))
  return [...lacking, ...lines]
}

function example (place: Place): (wrong: readonly string[], right: readonly string[]) => Example {
  return (wrong, right) => ({ place, wrong, right })
}
