import { basename } from 'node:path/posix'
import { countCodePoints } from '../core/shared/text.ts'
import { KNOWN_FIELDS, RESERVED_WORD } from '../core/format/fields.ts'
import { own, ownText } from '../core/shared/json.ts'
import type { Finding } from '../core/shared/skill.ts'
import {
  MAX_CLAUDE_LISTING_CHARACTERS, MAX_UPLOAD_BYTES, MAX_UPLOAD_FILE_BYTES, MAX_UPLOAD_FILES, MAX_UPLOAD_ZIP_BYTES
} from './limits.ts'
import { bytesOf, type Subject } from './subject.ts'

/** Fields that VS Code knows besides those of the format. It marks `allowed-tools`. */
export const VSCODE_FIELDS: ReadonlySet<string> =
  new Set(['argument-hint', 'user-invocable', 'disable-model-invocation', 'context'])

/** Characters that Gemini CLI replaces in a name. */
export const NOT_FOR_PATHS = /[:\\/<>*?"|]/

/** Conditions on a skill that an outcome may have besides the code of a finding. */
export const CONDITIONS = {
  main_file_not_lower_case: ({ skill }) => basename(skill.metadata.path) !== 'skill.md',
  name_not_letters: ({ skill: { metadata: { name } } }) => /[^\p{L}\p{N}-]/u.test(name) || name !== name.toLowerCase(),
  // Some readers read a number or a date as text.
  name_differs_from_folder: ({ skill: { frontmatter, metadata } }) => String(own(frontmatter, 'name'))
    .trim() !== basename(metadata.skillPath),
  name_has_reserved_word: ({ skill }) => RESERVED_WORD.test(skill.metadata.name),
  name_has_slash: ({ skill }) => skill.metadata.name.includes('/'),
  name_not_for_paths: ({ skill }) => NOT_FOR_PATHS.test(skill.metadata.name),
  field_is_no_scalar: ({ skill }, { field = '' }) => typeof own(skill.frontmatter, field) === 'object',
  field_unknown_to_vscode: ({ skill }) => Object.keys(skill.frontmatter)
    .some((field) => !KNOWN_FIELDS.has(field) && !VSCODE_FIELDS.has(field)),
  // Claude Code lists both texts together.
  listing_too_long: ({ skill: { frontmatter } }) => MAX_CLAUDE_LISTING_CHARACTERS <
    countCodePoints(ownText(frontmatter, 'description')) + countCodePoints(ownText(frontmatter, 'when_to_use')),
  description_has_line_break: ({ skill }) => skill.metadata.description.includes('\n'),
  too_large_for_anthropic: (subject) => bytesOf(subject) >= MAX_UPLOAD_BYTES,
  too_large_for_openai: ({ files = [] }) => files.length > MAX_UPLOAD_FILES ||
    bytesOf({ files }) > MAX_UPLOAD_ZIP_BYTES || files.some(({ size_bytes: size }) => size > MAX_UPLOAD_FILE_BYTES)
} as const satisfies Readonly<Record<string, (subject: Subject, found: Finding) => boolean>>

export type ConditionName = keyof typeof CONDITIONS
