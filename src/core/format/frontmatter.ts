import { load, YAML11_SCHEMA, YAMLException } from 'js-yaml'
import { isJsonObject, own } from '../shared/json.ts'
import { MAX_FRONTMATTER_BYTES, MAX_FRONTMATTER_DEPTH } from '../shared/limits.ts'
import type { Finding, Frontmatter } from '../shared/skill.ts'
import { quote } from '../shared/text.ts'
import { finding, quoteList } from './findings.ts'

interface ParsedFrontmatter {
  /** Plain JSON data. */
  readonly frontmatter: Frontmatter
  readonly findings: readonly Finding[]
  /** False where nothing could be read: the findings say why. */
  readonly isRead: boolean
}

/** Beginnings of js-yaml's reasons: its two limits, and an input without a document, which is not an error here. */
const TOO_DEEP = 'nesting exceeded'
const ALIASED = 'aliases exceeded'
const EMPTY = 'expected a document'
const MAX_TRIED_ALIASES = 1_000

const HALF_CHARACTER = finding('half_character', 'the frontmatter has half a character, which is served as U+FFFD',
  "Write the character itself instead of its '\\u' escapes")

/** js-yaml finds these two where the next entry begins. */
const NO_COLON = 'can not read a block mapping entry'
const NO_COMMA = 'missed comma'

/**
 * Marks of a value that its author meant as plain text and js-yaml refuses: an indicator at the start, a colon
 * before a blank or at the end, and a control character. Other values keep their type: `version: 1` stays a number.
 */
const NOT_PLAIN = /^[@`*%!,\]}]|^[-?:][ \t]|:[ \t]|:$|[^\P{Cc}\t]/u

/** Values in quotes, over several lines, or in flow style are never repaired. */
const STRUCTURED_VALUE = /^["'|>[{]/

/** Whether a value in one line needs no quotes, as far as those marks tell. */
export function isPlainScalar (value: string): boolean {
  return !NOT_PLAIN.test(value)
}

/**
 * Reads the YAML between the fences: YAML 1.2 core types, no aliases, bounded depth and size. If js-yaml fails, a
 * second pass takes the refused one-line values as text. Never throws.
 */
export function parseFrontmatter (bytes: Buffer): ParsedFrontmatter {
  if (bytes.length > MAX_FRONTMATTER_BYTES) {
    return unread(finding('frontmatter_too_large',
      `the frontmatter has ${bytes.length} bytes, more than the ${MAX_FRONTMATTER_BYTES} that are read`,
      'Move long text from the frontmatter into the body of SKILL.md'))
  }
  const source = bytes.toString()
  try {
    const { findings, ...parsed } = describeValue(readYaml(source))
    return { ...parsed, findings: [...findings, ...ambiguousFindings(parsed.frontmatter, source)] }
  } catch (error) {
    const problem = failureFinding(error, source)
    const { text, fields } = quotePlainValues(source)
    try {
      return problem.code === 'yaml_refused' ? unread(problem) : describeValue(readYaml(text), fields)
    } catch {
      return unread(problem)
    }
  }
}

/** @throws {YAMLException} */
function readYaml (source: string): unknown {
  try {
    return load(source, { maxDepth: MAX_FRONTMATTER_DEPTH, maxAliases: 0 })
  } catch (error) {
    const reason = error instanceof YAMLException ? error.reason : ''
    if (reason.startsWith(EMPTY)) return null
    // A value such as `*.ts` begins like an alias and is none: this says that no anchor belongs to it.
    if (reason.startsWith(ALIASED)) load(source, { maxDepth: MAX_FRONTMATTER_DEPTH, maxAliases: MAX_TRIED_ALIASES })
    throw error
  }
}

/**
 * What JSON cannot carry: `.inf` and `.nan` become text, and half a surrogate pair becomes U+FFFD.
 * @param onText called with each text as it was written
 */
function toJson (value: unknown, onText: (text: string) => void): unknown {
  if (typeof value === 'string') {
    onText(value)
    return value.toWellFormed()
  }
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (Array.isArray(value)) return value.map((member) => toJson(member, onText))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map((entry) => entry.map((part) => toJson(part, onText))))
}

/** Names and descriptions that are text here, and something else to readers of YAML 1.1. */
function ambiguousFindings (values: Frontmatter, source: string): Finding[] {
  const isText = (fields: unknown, field: string): boolean => typeof own(fields, field) === 'string'
  let older: unknown
  try {
    older = load(source, { schema: YAML11_SCHEMA, maxDepth: MAX_FRONTMATTER_DEPTH, maxAliases: 0 })
  } catch {}
  if (!isJsonObject(older)) return []
  return ['name', 'description'].filter((field) => isText(values, field) && !isText(older, field)).map((field) =>
    finding('text_ambiguous', `${field} is a number, a date or a truth value to some readers of YAML`,
      `Put ${field} in double quotes`, field))
}

/** @param repaired fields whose one-line text is not YAML, and was read as it stands */
function describeValue (value: unknown, repaired: readonly string[] = []): ParsedFrontmatter {
  if (isJsonObject(value)) {
    let isWellFormed = true
    const frontmatter = toJson(value, (text) => { isWellFormed &&= text.isWellFormed() }) as Frontmatter
    const findings = [...repairFindings(repaired, value), ...isWellFormed ? [] : [HALF_CHARACTER]]
    return { frontmatter, findings, isRead: true }
  }
  return unread(value === null
    ? finding('frontmatter_empty', 'the frontmatter is empty',
      "Add the fields name and description between the two '---' lines")
    : finding('frontmatter_not_mapping', 'the frontmatter does not consist of fields',
      "Write the frontmatter as lines of the form 'field: value', beginning with name and description"))
}

function unread (problem: Finding): ParsedFrontmatter {
  return { frontmatter: {}, findings: [problem], isRead: false }
}

/** Writes each top-level one-line value that is not a plain scalar as a JSON string, which is a YAML string too. */
function quotePlainValues (source: string): { text: string, fields: string[] } {
  const fields: string[] = []
  const lines = linesOf(source)
  const repaired = lines.map((line, index) => {
    const colon = line.search(/:[ \t]/)
    const isContinued = /^[ \t]+\S/.test(lines[index + 1] ?? '')
    if (colon < 1 || isContinued || /^[\s#]/.test(line)) return line
    const value = line.slice(colon + 1).trim()
    const beforeComment = value.split(/[ \t]#/, 1)[0] ?? value
    if (value.startsWith('#') || STRUCTURED_VALUE.test(value) || isPlainScalar(beforeComment)) return line
    fields.push(line.slice(0, colon))
    return `${line.slice(0, colon)}: ${JSON.stringify(value)}`
  })
  return { text: repaired.join('\n'), fields }
}

/** One finding for all fields whose text was read as it stands. */
function repairFindings (fields: readonly string[], values: Frontmatter): Finding[] {
  if (fields.length === 0) return []
  const names = quoteList(fields)
  const hasApostrophe = fields.some((field) => String(own(values, field)).includes("'"))
  return [finding('yaml_repaired', `the text of ${names} is not valid YAML and was read as it stands`,
    `Put the text of ${names} in single quotes${hasApostrophe ? ", with each ' in it written twice" : ''}`, fields[0])]
}

function failureFinding (error: unknown, source: string): Finding {
  const { reason, mark } = error instanceof YAMLException ? error : { reason: 'it cannot be read', mark: undefined }
  if (reason.startsWith(TOO_DEEP)) {
    return finding('yaml_refused', `the frontmatter is nested more than ${MAX_FRONTMATTER_DEPTH} levels deep`,
      'Flatten the frontmatter to a few levels')
  }
  if (reason.startsWith(ALIASED)) {
    return finding('yaml_refused', 'the frontmatter uses YAML aliases, which are not read',
      "Write the aliased values out, and put a value that is meant to begin with '*' in quotes")
  }
  // Lines are counted from 0 and after the opening fence.
  const position = mark && { line: wrongLine(source, reason, mark) + 2, column: 1 }
  const where = position === undefined ? 'the frontmatter' : `line ${position.line} of SKILL.md`
  return finding('yaml_invalid', `${where} is not valid YAML: ${quote(reason)}`,
    `Correct ${where}, or put its value in double quotes`, undefined, position)
}

function wrongLine (source: string, reason: string, { line, column }: { line: number, column: number }): number {
  const lines = linesOf(source)
  const isCommaMissing = reason.startsWith(NO_COMMA) && !/[,:[{]/.test(lines[line]?.slice(0, column) ?? '')
  let last = Math.max(0, reason.startsWith(NO_COLON) || isCommaMissing ? line - 1 : Math.min(line, lines.length - 1))
  while (last > 0 && lines[last]?.trim() === '') last--
  return last
}

function linesOf (source: string): string[] {
  return source.split(/\r\n?|\n/)
}
