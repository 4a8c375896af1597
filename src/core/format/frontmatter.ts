import { load, YAMLException } from 'js-yaml'
import { finding, quote, quoteList } from './findings.ts'
import { MAX_FRONTMATTER_BYTES, MAX_FRONTMATTER_DEPTH } from '../limits.ts'
import type { Finding, Frontmatter } from '../skill.ts'

/** Byte offsets of frontmatter and body in a main file. Fences and a BOM belong to neither. */
export type FrontmatterLocation =
  | { readonly kind: 'found', readonly start: number, readonly end: number, readonly bodyStart: number }
  | { readonly kind: 'missing', readonly bodyStart: number }
  | { readonly kind: 'unclosed', readonly bodyStart: number }

export interface ParsedFrontmatter {
  readonly frontmatter: Frontmatter
  readonly findings: readonly Finding[]
}

interface YamlFailure {
  readonly kind: 'failure'
  readonly reason: string
  /** Counted from 0. */
  readonly line: number | undefined
}

type YamlOutcome = YamlFailure | { readonly kind: 'value', readonly value: unknown }

const BOM = Buffer.from('\uFEFF')
const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const BLANK = 0x20
const DASH = 0x2d

/** Beginnings of js-yaml's reasons: its two limits, and an input without a document, which is no syntax error here. */
const TOO_DEEP = 'nesting exceeded'
const ALIASED = 'aliases exceeded'
const EMPTY = 'expected a document'

/** The fix of a syntax error, by js-yaml's reason. */
const SYNTAX_FIXES: ReadonlyArray<readonly [RegExp, (place: string) => string]> = [
  [/^duplicated mapping key/, place => `Remove the field in ${place} or the other one of the same name`],
  [/^tab characters/, place => `Indent ${place} with blanks instead of tabs`],
  [/^unknown escape/, place => `Write every backslash in ${place} twice`],
  [/^unknown \w+ tag|^undeclared tag/, place => `Put the value in ${place} that begins with '!' in double quotes`],
  [/^expected a single document/, () => "Remove the lines that begin with '---' or '...' from the frontmatter"]
]

/**
 * Marks of a value that its author meant as plain text and js-yaml refuses: an indicator at the start, a colon before a
 * blank or at the end, a control character. Other values keep their type: `version: 1` stays a number.
 */
const NOT_PLAIN = /^[@`*%!,\]}]|^[-?:][ \t]|:[ \t]|:$|[^\P{Cc}\t]/u

/** Values in quotes, over several lines, or in flow style are never repaired. */
const STRUCTURED_VALUE = /^["'|>[{]/

export function startsWithBom (bytes: Buffer): boolean {
  return bytes.subarray(0, BOM.length).equals(BOM)
}

/**
 * Finds the two fences: the first line, and the next one that is `---`, with LF or CRLF. Blanks and tabs may follow the
 * dashes. One pass over any bytes.
 */
export function locateFrontmatter (bytes: Buffer): FrontmatterLocation {
  const fileStart = startsWithBom(bytes) ? BOM.length : 0
  const start = endOfFence(bytes, fileStart)
  if (start === undefined) return { kind: 'missing', bodyStart: fileStart }

  for (let lineStart = start; lineStart < bytes.length; lineStart++) {
    if (bytes[lineStart - 1] !== LF) continue
    const bodyStart = endOfFence(bytes, lineStart)
    if (bodyStart !== undefined) return { kind: 'found', start, end: lineStart, bodyStart }
  }
  return { kind: 'unclosed', bodyStart: fileStart }
}

/** The offset after the fence line that begins at `at`, or undefined if no fence begins there. */
function endOfFence (bytes: Buffer, at: number): number | undefined {
  if (bytes[at] !== DASH || bytes[at + 1] !== DASH || bytes[at + 2] !== DASH) return undefined
  let end = at + 3
  while (bytes[end] === BLANK || bytes[end] === TAB) end++
  if (end === bytes.length) return end
  if (bytes[end] === CR) end++
  return bytes[end] === LF ? end + 1 : undefined
}

/**
 * Reads the YAML between the fences: YAML 1.2 core types, no aliases, bounded depth and size. If js-yaml fails, a second
 * pass takes the refused one-line values as text. Never throws.
 */
export function parseFrontmatter (bytes: Buffer): ParsedFrontmatter {
  if (bytes.length > MAX_FRONTMATTER_BYTES) {
    return refused(finding('frontmatter_too_large',
      `the frontmatter has ${bytes.length} bytes, more than the ${MAX_FRONTMATTER_BYTES} that are read`,
      'Move long text from the frontmatter into the body of SKILL.md'))
  }
  const source = bytes.toString()
  const asWritten = readYaml(source)
  if (asWritten.kind === 'value') return fromValue(asWritten.value, [])
  if (asWritten.reason.startsWith(TOO_DEEP)) {
    return refused(finding('yaml_refused', `the frontmatter is nested more than ${MAX_FRONTMATTER_DEPTH} levels deep`,
      'Flatten the frontmatter to a few levels'))
  }
  if (asWritten.reason.startsWith(ALIASED)) {
    return refused(finding('yaml_refused', 'the frontmatter uses YAML aliases, which are not read',
      "Write the aliased values out, and put a value that is meant to begin with '*' in quotes"))
  }

  const { text, fields } = quotePlainValues(source)
  const repaired = fields.length > 0 ? readYaml(text) : asWritten
  return repaired.kind === 'value' ? fromValue(repaired.value, [repairFinding(fields)]) : refused(syntaxFinding(asWritten))
}

function readYaml (source: string): YamlOutcome {
  try {
    return { kind: 'value', value: load(source, { maxDepth: MAX_FRONTMATTER_DEPTH, maxAliases: 0 }) }
  } catch (error) {
    if (!(error instanceof YAMLException)) return { kind: 'failure', reason: 'it cannot be read', line: undefined }
    if (error.reason.startsWith(EMPTY)) return { kind: 'value', value: null }
    return { kind: 'failure', reason: error.reason, line: error.mark?.line }
  }
}

function fromValue (value: unknown, findings: readonly Finding[]): ParsedFrontmatter {
  if (value === null || value === undefined) {
    return refused(finding('frontmatter_empty', 'the frontmatter is empty',
      "Add the fields name and description between the two '---' lines"))
  }
  if (isMapping(value)) return { frontmatter: value, findings }
  return refused(finding('frontmatter_not_mapping', 'the frontmatter does not consist of fields',
    "Write the frontmatter as lines of the form 'field: value', beginning with name and description"))
}

function refused (problem: Finding): ParsedFrontmatter {
  return { frontmatter: {}, findings: [problem] }
}

/** A YAML mapping as js-yaml gives it: a plain object whose keys, `__proto__` too, are its own data. */
export function isMapping (value: unknown): value is Frontmatter {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Writes each top-level one-line value that is not a plain scalar as a JSON string, which is a YAML string too. */
function quotePlainValues (source: string): { text: string, fields: string[] } {
  const fields: string[] = []
  const lines = source.split(/\r\n?|\n/)
  const repaired = lines.map((line, index) => {
    const colon = line.search(/:[ \t]/)
    const isContinued = /^[ \t]+\S/.test(lines[index + 1] ?? '')
    if (colon < 1 || isContinued || /^[\s#]/.test(line)) return line
    const value = line.slice(colon + 1).trim()
    const beforeComment = value.split(/[ \t]#/, 1)[0] ?? value
    if (STRUCTURED_VALUE.test(value) || !NOT_PLAIN.test(beforeComment)) return line
    fields.push(line.slice(0, colon))
    return `${line.slice(0, colon)}: ${JSON.stringify(value)}`
  })
  return { text: repaired.join('\n'), fields }
}

function repairFinding (fields: readonly string[]): Finding {
  const names = quoteList(fields)
  return finding('yaml_repaired', `the text of ${names} is not valid YAML and was read as it stands`,
    `Put the text of ${names} in double quotes`, fields[0])
}

function syntaxFinding ({ reason, line }: YamlFailure): Finding {
  // js-yaml counts lines from 0 and begins after the opening fence.
  const place = line === undefined ? 'the frontmatter' : `line ${line + 2} of SKILL.md`
  return finding('yaml_invalid', `${place} is not valid YAML: ${quote(reason)}`, syntaxFix(reason, place))
}

function syntaxFix (reason: string, place: string): string {
  const fix = SYNTAX_FIXES.find(([pattern]) => pattern.test(reason))?.[1]
  return fix?.(place) ?? `Correct ${place}, or put its value in double quotes`
}
