import { basename } from 'node:path/posix'
import { load, mapTag, type Schema, seqTag, strTag, YAML11_SCHEMA } from 'js-yaml'
import { MAX_FRONTMATTER_DEPTH } from '../core/shared/limits.ts'
import { countCodePoints } from '../core/shared/text.ts'
import { KNOWN_FIELDS, NAME_CHARACTERS, RESERVED_WORD } from '../core/format/fields.ts'
import { isJsonObject, own, ownText } from '../core/shared/json.ts'
import type { Finding } from '../core/shared/skill.ts'
import {
  MAX_CLAUDE_LISTING_CHARACTERS, MAX_UPLOAD_BYTES, MAX_UPLOAD_FILE_BYTES, MAX_UPLOAD_FILES
} from './limits.ts'
import { hasBrackets } from './rules/yaml-style.ts'
import { bytesOf, frontmatterOf, type Subject } from './subject.ts'

/** Fields that VS Code knows besides those of the format; `allowed-tools` it marks. */
export const VSCODE_FIELDS: ReadonlySet<string> =
  new Set(['argument-hint', 'user-invocable', 'disable-model-invocation', 'context'])

/** Characters that Gemini CLI replaces in a name. */
export const NOT_FOR_PATHS = /[:\\/<>*?"|]/

/** Aliases that are read to find out whether a reader with aliases would. */
const MAX_ALIASES = 1_000

/** Largest ZIP of a skill that OpenAI takes, in bytes. */
const MAX_UPLOAD_ZIP_BYTES = 50_000_000

/** What decides on an outcome besides the code of a finding. */
export const CONDITIONS = {
  main_file_not_lower_case: ({ skill }) => basename(skill.metadata.path) !== 'skill.md',
  name_not_letters: ({ skill: { metadata: { name } } }) => /[^\p{L}\p{N}-]/u.test(name) || name !== name.toLowerCase(),
  // A number or date is text to some readers.
  name_differs_from_folder: ({ skill: { frontmatter, metadata } }) => String(own(frontmatter, 'name'))
    .trim() !== basename(metadata.skillPath),
  trimmed_name_invalid: ({ skill }) => !NAME_CHARACTERS.test(skill.metadata.name),
  name_has_reserved_word: ({ skill }) => RESERVED_WORD.test(skill.metadata.name),
  field_is_absent: ({ skill }, { field = '' }) => own(skill.frontmatter, field) === undefined,
  field_is_null: ({ skill }, { field = '' }) => own(skill.frontmatter, field) === null,
  field_is_no_scalar: ({ skill }, { field = '' }) => typeof own(skill.frontmatter, field) === 'object',
  name_has_slash: ({ skill }) => skill.metadata.name.includes('/'),
  name_not_for_paths: ({ skill }) => NOT_FOR_PATHS.test(skill.metadata.name),
  // What Claude Code lists of a skill is both texts together.
  listing_too_long: ({ skill: { frontmatter } }) => MAX_CLAUDE_LISTING_CHARACTERS <
    countCodePoints(ownText(frontmatter, 'description')) + countCodePoints(ownText(frontmatter, 'when_to_use')),
  description_has_line_break: ({ skill }) => skill.metadata.description.includes('\n'),
  field_unknown_to_vscode: ({ skill }) => Object.keys(skill.frontmatter)
    .some((field) => !KNOWN_FIELDS.has(field) && !VSCODE_FIELDS.has(field)),
  too_large_for_anthropic: (subject) => bytesOf(subject) >= MAX_UPLOAD_BYTES,
  too_large_for_openai: ({ files = [] }) => files.length > MAX_UPLOAD_FILES ||
    bytesOf({ files }) > MAX_UPLOAD_ZIP_BYTES || files.some(({ size_bytes: size }) => size > MAX_UPLOAD_FILE_BYTES),
  field_in_brackets: hasBrackets,
  // Its client reads some of what other readers refuse, and refuses some of what they read.
  refused_by_mcp: ({ otherFindings }) => otherFindings.some(({ code }) => code === 'mcp_refused'),
  line_refused_by_mcp: ({ otherFindings }, { line }) =>
    otherFindings.some((other) => other.code === 'mcp_refused' && other.line === line),
  // Of the truth values of YAML 1.1, and of its numbers in base 60, each reader takes some as text.
  not_text_to_pyyaml: isNoTextFor(/^[yn]$/i),
  not_text_to_js_yaml_3: isNoTextFor(/^(?:yes|no|on|off|y|n)$/i),
  not_text_to_js_yaml_4: isNoTextFor(/^(?:yes|no|on|off|y|n|[-+\d_]+:.*)$/i),
  // `.inf` and `.nan`, which are no text in YAML 1.2 either.
  value_is_infinite: ({ skill }, { field = '' }) => /^(?:-?Infinity|NaN)$/.test(ownText(skill.frontmatter, field)),
  refused_by_yaml: (subject) => !hasTexts(readWith(ANY_TAG, frontmatterOf(subject))),
  refused_by_pyyaml: (subject) => !hasTexts(readWith(YAML11_SCHEMA, frontmatterOf(subject), true)),
  // Of which serde_yaml has a port: it knows no tags.
  refused_by_libyaml: (subject) => readWith(ANY_TAG, frontmatterOf(subject)) === undefined,
  refused_by_js_yaml: (subject) => !hasTexts(readWith(YAML11_SCHEMA, frontmatterOf(subject))),
  refused_by_opencode: (subject) => {
    const source = frontmatterOf(subject) ?? ''
    return !hasTexts(readWith(YAML11_SCHEMA, source) ?? readWith(YAML11_SCHEMA, withBlocks(source)))
  },
  opening_fence_has_tab: ({ mainFile }) => /^--- *\t/.test(mainFile?.toString('latin1') ?? ''),
  opening_fence_has_blanks: ({ mainFile }) => /^---[ \t]+\r?\n/.test(mainFile?.toString('latin1') ?? '')
} as const satisfies Readonly<Record<string, (subject: Subject, found: Finding) => boolean>>

export type ConditionName = keyof typeof CONDITIONS

/** @param texts what a reader takes as text */
function isNoTextFor (texts: RegExp) {
  return ({ skill }: Subject, { field = '' }: Finding): boolean => !texts.test(ownText(skill.frontmatter, field))
}

/** `yaml` takes tags that it does not know with a warning. js-yaml 3 and 4 know those of YAML 1.1. */
const ANY_TAG = YAML11_SCHEMA.withTags(
  [strTag, seqTag, mapTag].map((tag) => ({ ...tag, tagName: '', matchByTagPrefix: true })))

/**
 * What a parser with other tags, and with aliases, makes of frontmatter.
 * @param json the last of two equal keys counts
 */
function readWith (schema: Schema, source = '', json = false): unknown {
  try {
    return load(source, { schema, json, maxDepth: MAX_FRONTMATTER_DEPTH, maxAliases: MAX_ALIASES })
  } catch {
    return undefined
  }
}

function hasTexts (fields: unknown): boolean {
  return isJsonObject(fields) && ['name', 'description'].every((field) => typeof (fields[field] ?? '') === 'string')
}

/** OpenCode's second attempt: one-line values with a colon are written as blocks, unless they begin with a quote. */
function withBlocks (source: string): string {
  return source.split(/\r?\n/).map((line) => {
    const [, field, value = ''] = /^([A-Za-z_]\w*)\s*:\s*(.*)$/.exec(line) ?? []
    return field === undefined || /^["']/.test(value) || !value.includes(':') ? line : `${field}: |-\n  ${value.trim()}`
  }).join('\n')
}
