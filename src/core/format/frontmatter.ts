import { load, YAMLException } from 'js-yaml'
import { isJsonObject, mapScalars, own } from '../shared/json.ts'
import { MAX_FRONTMATTER_BYTES, MAX_FRONTMATTER_DEPTH } from '../shared/limits.ts'
import type { Finding, Frontmatter } from '../shared/skill.ts'
import { quote } from '../shared/text.ts'
import { finding, quoteList } from './findings.ts'

interface ParsedFrontmatter {
  /** Plain JSON data. A frontmatter that is not YAML has only `name` and `description`, where they can be read. */
  readonly frontmatter: Frontmatter
  readonly findings: readonly Finding[]
  /** False where nothing could be read: the findings say why. */
  readonly isRead: boolean
}

/** Beginnings of js-yaml's reasons. */
const TOO_DEEP = 'nesting exceeded'
const ALIASED = 'aliases exceeded'
const EMPTY = 'expected a document'
const DUPLICATE = 'duplicated mapping key'
const MAX_TRIED_ALIASES = 1_000

const LIMITS = { maxDepth: MAX_FRONTMATTER_DEPTH, maxAliases: 0 } as const

/** js-yaml finds these where the next entry begins. */
const NO_COLON = 'can not read a block mapping entry'
const NO_COMMA = 'missed comma'

/** It finds an unclosed quote or bracket where the indentation or the frontmatter ends. */
const UNCLOSED = /^(?:deficient indentation|unexpected end of the)/
const OPENING = /(?:^|[:-][ \t]+)["'[{]/

/**
 * Text that its author meant as a plain value and js-yaml refuses: with an indicator at the start, a colon before a
 * blank or at the end, or a control character. Only such values are repaired, so that `version: 1` stays a number.
 */
const NOT_PLAIN = /^[@`*%!,\]}]|^[-?:][ \t]|:[ \t]|:$|[^\P{Cc}\t]/u

/** Start of quoted, multi-line and flow-style values, which are never repaired. */
const STRUCTURED_VALUE = /^["'|>[{]/

/**
 * Parses the YAML between the fences: core types of YAML 1.2, no aliases, limited depth and size. If js-yaml fails,
 * values on one line that it refuses are read as text in a second pass. Never throws.
 */
export function parseFrontmatter (bytes: Buffer): ParsedFrontmatter {
  if (bytes.length > MAX_FRONTMATTER_BYTES) {
    return unread(finding('frontmatter_too_large',
      `the frontmatter has ${bytes.length} bytes, more than the ${MAX_FRONTMATTER_BYTES} that are read`,
      'Move long text from the frontmatter into the body of SKILL.md'))
  }
  const source = bytes.toString()
  try {
    return describeValue(source)
  } catch (error) {
    const problem = failureFinding(error, source)
    if (problem.code === 'yaml_refused') return unread(problem)
    const { text, fields } = quotePlainValues(source)
    try {
      return describeValue(text, fields)
    } catch (remaining) {
      return { ...unread(failureFinding(remaining, text)), frontmatter: readNamingFields(source) }
    }
  }
}

/**
 * @param onDuplicate called with the line of the first duplicate key; the last value of the key is used
 * @throws {YAMLException}
 */
function readYaml (source: string, onDuplicate: (line: number) => void): unknown {
  try {
    return load(source, LIMITS)
  } catch (error) {
    const { reason = '', mark } = error instanceof YAMLException ? error : {}
    if (reason.startsWith(EMPTY)) return null
    if (reason.startsWith(DUPLICATE) && mark !== undefined) {
      onDuplicate(mark.line)
      return load(source, { ...LIMITS, json: true })
    }
    // A value such as `*.ts` looks like an alias. Parsing with aliases allowed reports that it has no anchor.
    if (reason.startsWith(ALIASED)) load(source, { ...LIMITS, maxAliases: MAX_TRIED_ALIASES })
    throw error
  }
}

/** Replaces values that JSON cannot represent: `.inf` and `.nan` by text, lone surrogates by U+FFFD. */
function toJson (value: unknown): unknown {
  return mapScalars(value, (scalar) => {
    if (typeof scalar === 'string') return scalar.toWellFormed()
    return typeof scalar === 'number' && !Number.isFinite(scalar) ? String(scalar) : scalar
  })
}

/**
 * @param repaired fields whose value was not valid YAML and was quoted
 * @throws {YAMLException}
 */
function describeValue (source: string, repaired: readonly string[] = []): ParsedFrontmatter {
  const duplicates: Finding[] = []
  const value = readYaml(source, (line) => duplicates.push(duplicateFinding(source, line)))
  if (isJsonObject(value)) {
    const findings = [...repairFindings(repaired, value), ...duplicates]
    return { frontmatter: toJson(value) as Frontmatter, findings, isRead: true }
  }
  return unread(value === null
    ? finding('frontmatter_empty', 'the frontmatter is empty',
      "Add the fields name and description between the two '---' lines")
    : finding('frontmatter_not_mapping', 'the frontmatter does not consist of fields',
      "Write the frontmatter as lines of the form 'field: value', beginning with name and description"))
}

/** @param line counted from 0, after the opening fence */
function duplicateFinding (source: string, line: number): Finding {
  const [key = ''] = (linesOf(source)[line] ?? '').split(':', 1)
  const message = `the key ${quote(key.trim())} occurs twice: some readers take the last one, others refuse it`
  return finding('yaml_not_portable', message, 'Remove one of the two', undefined, { line: line + 2, column: 1 })
}

/** Reads `name` and `description` of a frontmatter that is not YAML, each by itself. */
function readNamingFields (source: string): Frontmatter {
  const fields = {}
  const lines = linesOf(source)
  for (const [index, line] of lines.entries()) {
    if (!/^(?:name|description):/.test(line)) continue
    const length = lines.slice(index + 1).findIndex((each) => /^[^ \t]/.test(each))
    const block = lines.slice(index, length === -1 ? undefined : index + 1 + length).join('\n')
    try {
      Object.assign(fields, toJson(load(quotePlainValues(block).text, LIMITS)))
    } catch {}
  }
  return fields
}

function unread (problem: Finding): ParsedFrontmatter {
  return { frontmatter: {}, findings: [problem], isRead: false }
}

/** Puts each top-level one-line value that is not a plain scalar into quotes. */
export function quotePlainValues (source: string): { text: string, fields: string[] } {
  const fields: string[] = []
  const lines = linesOf(source)
  const repaired = lines.map((line, index) => {
    const colon = line.search(/:[ \t]/)
    const isContinued = /^[ \t]+\S/.test(lines[index + 1] ?? '')
    if (colon < 1 || isContinued || /^[\s#]/.test(line)) return line
    const value = line.slice(colon + 1).trim()
    const beforeComment = value.split(/[ \t]#/, 1)[0] ?? value
    if (value.startsWith('#') || STRUCTURED_VALUE.test(value) || !NOT_PLAIN.test(beforeComment)) return line
    fields.push(line.slice(0, colon))
    return `${line.slice(0, colon)}: ${quoteScalar(value)}`
  })
  return { text: repaired.join('\n'), fields }
}

/** YAML refuses some control characters that `JSON.stringify` does not escape. */
function quoteScalar (text: string): string {
  if (!/[^\P{Cc}\t]/u.test(text)) return `'${text.replaceAll("'", "''")}'`
  return JSON.stringify(text).replaceAll(/[\x7f-\x9f]/g, (each) => `\\u00${each.charCodeAt(0).toString(16)}`)
}

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
  // js-yaml counts lines from 0, and the opening fence is not in its input.
  const position = mark && { line: wrongLine(source, reason, mark) + 2, column: 1 }
  const where = position === undefined ? 'the frontmatter' : `line ${position.line} of SKILL.md`
  return finding('yaml_invalid', `${where} is not valid YAML: ${quote(reason)}`,
    `Correct ${where}, or put its value in double quotes`, undefined, position)
}

function wrongLine (source: string, reason: string, { line, column }: { line: number, column: number }): number {
  const lines = linesOf(source)
  const isCommaMissing = reason.startsWith(NO_COMMA) && !/[,:[{]/.test(lines[line]?.slice(0, column) ?? '')
  const isUnclosed = UNCLOSED.test(reason)
  let last = Math.max(0, reason.startsWith(NO_COLON) || isCommaMissing || isUnclosed
    ? line - 1
    : Math.min(line, lines.length - 1))
  while (last > 0 && lines[last]?.trim() === '') last--
  const opening = isUnclosed ? lines.findLastIndex((each, index) => index <= last && OPENING.test(each)) : -1
  return opening === -1 ? last : opening
}

function linesOf (source: string): string[] {
  return source.split(/\r\n?|\n/)
}
