import { findingsIn, FINDINGS as CORE_FINDINGS } from '../core/format/findings.ts'
import { MAX_TEXT_FILE_BYTES } from '../core/shared/limits.ts'
import { grouped as n } from '../core/shared/text.ts'
import * as limits from './limits.ts'

/** All findings that verdicts depend on: those of the core, and those that matter only to some targets. */
export const FINDINGS = {
  ...CORE_FINDINGS,

  description_angle_bracket: ['info', '`description` has an angle bracket'],
  description_block_scalar: ['info', '`description` is written as a block, after `|` or `>`'],
  description_not_one_line: ['info', '`description` has several lines'],
  when_to_use_too_long: ['info',
    '`description` and `when_to_use` together have more than ' +
    `${n(limits.MAX_CLAUDE_LISTING_CHARACTERS)} characters`],
  frontmatter_flow_style: ['info', 'the frontmatter has a list or mapping in brackets'],
  nobody_can_invoke: ['info', 'neither a model nor a user may invoke the skill'],
  vendored_copy: ['info', 'the skill is a copy that an installer made'],
  body_placeholder: ['info', 'the body has placeholders that only Claude Code fills in'],
  body_link_missing: ['warning', 'the body refers to files that the skill does not have'],
  body_link_outside: ['warning', 'the body links to files outside the skill'],
  secret_in_text: ['warning', 'SKILL.md has what looks like a key or a token'],
  encoded_text: ['info', 'SKILL.md has 1 KiB or more of encoded data in a row'],
  download_to_shell: ['info', 'SKILL.md has a command that hands a download to a shell'],
  file_names_collide: ['warning', 'files or folders differ only in case, or in how characters are composed'],
  file_name_not_portable: ['info', 'files have names that Windows cannot write'],
  nested_skills: ['info', 'a folder inside the skill is a skill itself'],
  upload_too_large: ['info', `the skill is larger than uploads accept: ${n(limits.MAX_UPLOAD_BYTES)} bytes, ` +
    `${n(limits.MAX_UPLOAD_FILES)} files, ${n(limits.MAX_UPLOAD_FILE_BYTES)} bytes in a file`],

  mcp_refused: ['info', 'MCP does not list the skill: the official client refuses its frontmatter'],
  mcp_file_too_large: ['info',
    `MCP does not list the skill: a file has more than ${n(MAX_TEXT_FILE_BYTES)} bytes`],
  mcp_too_many_files: ['info', `MCP does not list the skill: it has more than ${n(limits.MAX_MCP_LISTED_FILES)} files`],
  mcp_limits_exceeded: ['info', 'MCP hosts may decline the skill: it has more than ' +
    `${n(limits.MCP_ADVISED_SKILL_FILES)} files or ${n(limits.MCP_ADVISED_SKILL_BYTES)} bytes`],

  discovery_frontmatter_differs: ['info', 'in no discovery index: clients find no frontmatter, or read another one'],
  discovery_path_unsafe: ['info',
    'in no discovery index: a path has a backslash, begins like a drive, or looks like SKILL.md'],
  discovery_path_not_plain: ['info', 'not in the discovery index 0.1.0: it cannot name a path of the skill'],
  discovery_description_too_long: ['info', 'not in the discovery index 0.2.0: ' +
    `\`description\` has more than ${n(limits.MAX_DISCOVERY_DESCRIPTION_UNITS)} UTF-16 units`],
  discovery_archive_too_large: ['info', 'not in the discovery index 0.2.0: more than ' +
    `${n(limits.MAX_DISCOVERY_FILES)} files or ${n(limits.MAX_DISCOVERY_UNPACKED_BYTES)} bytes`],
  discovery_file_large: ['info',
    `one client of the discovery index 0.1.0 cuts files after ${n(limits.ADVISED_DISCOVERY_FILE_BYTES)} bytes`],
  discovery_internal: ['info', 'some clients of the discovery indexes show the skill only when asked for by its name']
} as const

export type FindingCode = keyof typeof FINDINGS

export const { finding, findingOnFiles } = findingsIn<FindingCode>(FINDINGS)
