import { basename } from 'node:path/posix'
import { load } from 'js-yaml'
import { locateFrontmatter } from '../core/format/fences.ts'
import {
  MAX_CLAUDE_LISTING_CHARACTERS, MAX_FRONTMATTER_BYTES, MAX_FRONTMATTER_DEPTH, MAX_UPLOAD_BYTES, MAX_UPLOAD_FILE_BYTES,
  MAX_UPLOAD_FILES
} from '../core/shared/limits.ts'
import { countCodePoints } from '../core/shared/text.ts'
import { KNOWN_FIELDS, RESERVED_WORD } from '../core/format/fields.ts'
import { own, ownText } from '../core/shared/json.ts'
import type { Finding } from '../core/shared/skill.ts'
import { hasBrackets } from './rules/flow-style.ts'
import { bytesOf, type Subject } from './subject.ts'

/** Fields that VS Code knows besides those of the format; `allowed-tools` it marks. */
export const VSCODE_FIELDS: ReadonlySet<string> =
  new Set(['argument-hint', 'user-invocable', 'disable-model-invocation', 'context'])

/** Characters that Gemini CLI replaces in a name. */
export const NOT_FOR_PATHS = /[:\\/<>*?"|]/
const NOT_LETTERS = /[^\p{L}\p{N}-]/u

const OPENING_FENCE_WITH_BLANKS = /^---[ \t]+\r?\n/
const FENCE_BYTES = 256

/** Aliases that are read to find out whether a reader with aliases would. */
const MAX_OPENCODE_ALIASES = 1_000

/** Largest ZIP of a skill that OpenAI takes, in bytes. */
const MAX_UPLOAD_ZIP_BYTES = 50_000_000

/** What decides on an outcome besides the code of a finding. */
export const CONDITIONS = {
  main_file_not_lower_case: ({ skill }) => basename(skill.metadata.path) !== 'skill.md',
  name_not_letters: ({ skill }) =>
    NOT_LETTERS.test(skill.metadata.name) || skill.metadata.name !== skill.metadata.name.toLowerCase(),
  // A number or date is text to some readers.
  name_differs_from_folder: ({ skill: { frontmatter, metadata } }) => String(own(frontmatter, 'name'))
    .trim() !== basename(metadata.skillPath),
  name_has_reserved_word: ({ skill }) => RESERVED_WORD.test(skill.metadata.name),
  field_is_no_scalar: ({ skill }, { field = '' }) => typeof own(skill.frontmatter, field) === 'object',
  name_has_slash: ({ skill }) => skill.metadata.name.includes('/'),
  name_not_for_paths: ({ skill }) => NOT_FOR_PATHS.test(skill.metadata.name),
  listing_too_long: isListingTooLong,
  description_has_line_break: ({ skill }) => skill.metadata.description.includes('\n'),
  field_unknown_to_vscode: ({ skill }) => Object.keys(skill.frontmatter)
    .some((field) => !KNOWN_FIELDS.has(field) && !VSCODE_FIELDS.has(field)),
  too_large_for_anthropic: (subject) => bytesOf(subject) >= MAX_UPLOAD_BYTES,
  too_large_for_openai: (subject) => isTooLargeForOpenai(subject),
  field_in_brackets: hasBrackets,
  // Its client reads some of what other readers refuse, and refuses some of what they read.
  refused_by_mcp: ({ otherFindings }) => otherFindings.some(({ code }) => code === 'mcp_refused'),
  line_refused_by_mcp: ({ otherFindings }, { line }) =>
    otherFindings.some((other) => other.code === 'mcp_refused' && other.line === line),
  refused_by_opencode: ({ mainFile }) => mainFile !== undefined && !isReadByOpencode(mainFile),
  opening_fence_has_blanks: ({ mainFile }) =>
    mainFile !== undefined && OPENING_FENCE_WITH_BLANKS.test(mainFile.toString('latin1', 0, FENCE_BYTES))
} as const satisfies Readonly<Record<string, (subject: Subject, found: Finding) => boolean>>

export type ConditionName = keyof typeof CONDITIONS

/** A line of a field whose value OpenCode may write as a block when the YAML as it stands cannot be read. */
const OPENCODE_FIELD = /^([A-Za-z_]\w*)\s*:\s*(.*)$/

/** Whether OpenCode's second attempt reads it: values with a colon become blocks, unless they are in quotes. */
function isReadByOpencode (mainFile: Buffer): boolean {
  const location = locateFrontmatter(mainFile)
  if (location.kind !== 'found' || location.end - location.start > MAX_FRONTMATTER_BYTES) return false
  const lines = mainFile.toString('utf8', location.start, location.end).split(/\r?\n/).map((line) => {
    const [, field, text = ''] = OPENCODE_FIELD.exec(line) ?? []
    const value = text.trim()
    return field === undefined || /^["'|>]/.test(value) || !value.includes(':') ? line : `${field}: |-\n  ${value}`
  })
  try {
    load(lines.join('\n'), { maxDepth: MAX_FRONTMATTER_DEPTH, maxAliases: MAX_OPENCODE_ALIASES })
    return true
  } catch {
    return false
  }
}

/** What Claude Code lists of a skill is both texts together. */
export function isListingTooLong ({ skill: { frontmatter } }: Subject): boolean {
  return countCodePoints(ownText(frontmatter, 'description')) +
    countCodePoints(ownText(frontmatter, 'when_to_use')) > MAX_CLAUDE_LISTING_CHARACTERS
}

export function isTooLargeForOpenai (subject: Subject): boolean {
  const { files = [] } = subject
  return files.length > MAX_UPLOAD_FILES || bytesOf(subject) > MAX_UPLOAD_ZIP_BYTES ||
    files.some(({ size_bytes: size }) => size > MAX_UPLOAD_FILE_BYTES)
}
