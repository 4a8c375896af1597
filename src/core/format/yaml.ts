import { load, YAMLException } from 'js-yaml'
import { finding, type Position } from './findings.ts'
import { quote } from '../shared/text.ts'
import { MAX_FRONTMATTER_DEPTH } from '../shared/limits.ts'
import type { Finding } from '../shared/skill.ts'

export interface YamlFailure {
  readonly kind: 'failure'
  readonly reason: string
  /** The line that is wrong, counted from 0. */
  readonly line: number | undefined
}

type YamlOutcome = YamlFailure | { readonly kind: 'value', readonly value: unknown }

/** Beginnings of js-yaml's reasons: its two limits, and an input without a document, which is not a syntax error here. */
const TOO_DEEP = 'nesting exceeded'
const ALIASED = 'aliases exceeded'
const EMPTY = 'expected a document'

/** The reason for a value such as `*.ts`, which begins like an alias and is none. Enough aliases are read to find it. */
const NO_ANCHOR = 'unidentified alias'
const MAX_TRIED_ALIASES = 1_000

/** js-yaml finds these two where the next entry begins. */
const NO_COLON = 'can not read a block mapping entry'
const NO_COMMA = 'missed comma'

/** And these behind a text whose quote is not closed, or behind a line without a colon. */
const OPEN_QUOTE_REASON = /^(?:deficient indentation|unexpected end of the stream within a (?:single|double) quoted)/
const BAD_INDENTATION = 'bad indentation of a mapping entry'

/** Reasons for lines that js-yaml is not asked about. */
export const NO_FIELD_REASON = 'it begins no field'
export const INDENTED_REASON = 'it begins with spaces'

/** The fix of a syntax error, by js-yaml's reason. */
const SYNTAX_FIXES: ReadonlyArray<readonly [RegExp, (where: string) => string]> = [
  [/^duplicated mapping key/, where => `Remove the field in ${where} or the other one of the same name`],
  [/^tab characters/, where => `Indent ${where} with spaces instead of tabs`],
  [/^the stream contains non-printable|^expected valid JSON character|^null byte/, where => `Remove the control characters from ${where}`],
  [/^unidentified alias/, where => `Put the value in ${where} that begins with '*' in double quotes`],
  [/^unknown escape/, where => `Write every backslash in ${where} twice`],
  [/^unknown \w+ tag|^undeclared tag/, where => `Put the value in ${where} that begins with '!' in double quotes`],
  [/^expected a single document/, () => "Remove the lines that begin with '---' or '...' from the frontmatter"],
  [/^it begins with spaces/, where => `Remove the spaces at the start of ${where}`],
  [/^can not read a block mapping entry|^it begins no field/, where => `Write ${where} as 'field: value', or indent it as a part of the field before`]
]

/**
 * Marks of a value that its author meant as plain text and js-yaml refuses. They are an indicator at the start, a colon
 * before a blank or at the end, and a control character. Other values keep their type: `version: 1` stays a number.
 */
const NOT_PLAIN = /^[@`*%!,\]}]|^[-?:][ \t]|:[ \t]|:$|[^\P{Cc}\t]/u

/** Whether a value in one line needs no quotes, as far as those marks tell. */
export function isPlainScalar (value: string): boolean {
  return !NOT_PLAIN.test(value)
}

/** Values in quotes, over several lines, or in flow style are never repaired. */
const STRUCTURED_VALUE = /^["'|>[{]/

/**
 * YAML 1.2 core types, no aliases, bounded depth. Never throws.
 * @param isPart whether the anchors of aliases may be elsewhere
 */
function readYaml (source: string, isPart: boolean): YamlOutcome {
  try {
    return { kind: 'value', value: load(source, { maxDepth: MAX_FRONTMATTER_DEPTH, maxAliases: 0 }) }
  } catch (error) {
    if (!(error instanceof YAMLException)) return { kind: 'failure', reason: 'it cannot be read', line: undefined }
    if (error.reason.startsWith(EMPTY)) return { kind: 'value', value: null }
    const { reason, mark } = !isPart && error.reason.startsWith(ALIASED) ? withoutAnchor(source) ?? error : error
    return { kind: 'failure', reason, line: mark && wrongLine(source, reason, mark) }
  }
}

/** The error of an alias that no anchor belongs to, which every reader refuses; undefined for real aliases. */
function withoutAnchor (source: string): YAMLException | undefined {
  try {
    load(source, { maxDepth: MAX_FRONTMATTER_DEPTH, maxAliases: MAX_TRIED_ALIASES })
  } catch (error) {
    if (error instanceof YAMLException && error.reason.startsWith(NO_ANCHOR)) return error
  }
  return undefined
}

interface LenientOutcome {
  readonly outcome: YamlOutcome
  /** Fields whose one-line plain text is not YAML and was read as it stands. */
  readonly repaired: readonly string[]
}

/** If js-yaml fails, a second pass takes the refused one-line values as text. What was refused by intent stays refused. */
export function readLenientYaml (source: string, isPart = false): LenientOutcome {
  const asWritten = readYaml(source, isPart)
  if (asWritten.kind === 'value' || isRefusal(asWritten)) return { outcome: asWritten, repaired: [] }
  const { text, fields } = quotePlainValues(source)
  const outcome = fields.length > 0 ? readYaml(text, isPart) : asWritten
  return outcome.kind === 'value' ? { outcome, repaired: fields } : { outcome: asWritten, repaired: [] }
}

export function isAliased ({ reason }: YamlFailure): boolean {
  return reason.startsWith(ALIASED)
}

function isRefusal ({ reason }: YamlFailure): boolean {
  return reason.startsWith(TOO_DEEP) || reason.startsWith(ALIASED)
}

export function linesOf (source: string): string[] {
  return source.split(/\r\n?|\n/)
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
    // No value, and a comment.
    if (value.startsWith('#')) return line
    const beforeComment = value.split(/[ \t]#/, 1)[0] ?? value
    if (STRUCTURED_VALUE.test(value) || isPlainScalar(beforeComment)) return line
    fields.push(line.slice(0, colon))
    return `${line.slice(0, colon)}: ${JSON.stringify(value)}`
  })
  return { text: repaired.join('\n'), fields }
}

/**
 * The finding of what js-yaml refuses.
 * @param field the one that cannot be read, or undefined when nothing can
 */
export function failureFinding ({ reason, line }: YamlFailure, field?: string): Finding {
  const subject = field === undefined ? 'the frontmatter' : quote(field)
  if (reason.startsWith(TOO_DEEP)) {
    return finding('yaml_refused', `${subject} is nested more than ${MAX_FRONTMATTER_DEPTH} levels deep`, `Flatten ${subject} to a few levels`, field)
  }
  if (reason.startsWith(ALIASED)) {
    return finding('yaml_refused', `${subject} uses YAML aliases, which are not read`,
      "Write the aliased values out, and put a value that is meant to begin with '*' in quotes", field)
  }
  const where = line === undefined ? 'the frontmatter' : lineName(line)
  return finding('yaml_invalid', `${where} is not valid YAML: ${quote(reason)}`, syntaxFix(reason, where), field, line === undefined ? undefined : startOf(line))
}

/** Lines are counted from 0 and after the opening fence. */
export function lineName (line: number): string {
  return `line ${line + 2} of SKILL.md`
}

/** The position of a line of the frontmatter. */
export function startOf (line: number): Position {
  return { line: line + 2, column: 1 }
}

function syntaxFix (reason: string, where: string): string {
  const fix = SYNTAX_FIXES.find(([pattern]) => pattern.test(reason))?.[1]
  return fix?.(where) ?? `Correct ${where}, or put its value in double quotes`
}

/** js-yaml stops where it cannot go on, which is often the line after the mistake. */
function wrongLine (source: string, reason: string, { line, column }: { readonly line: number, readonly column: number }): number {
  const lines = linesOf(source)
  const isBefore = reason.startsWith(NO_COLON) || (reason.startsWith(NO_COMMA) && !/[,:[{]/.test(lines[line]?.slice(0, column) ?? ''))
  const wrong = lastWritten(lines, isBefore ? line - 1 : Math.min(line, lines.length - 1))
  if (OPEN_QUOTE_REASON.test(reason)) return openQuote(lines, wrong) ?? wrong
  const before = lastWritten(lines, wrong - 1)
  return reason.startsWith(BAD_INDENTATION) && before < wrong && isKeyAfterText(lines[wrong] ?? '', lines[before] ?? '') ? before : wrong
}

/** The nearest line at or above `line` that is not blank. */
function lastWritten (lines: readonly string[], line: number): number {
  let last = Math.max(line, 0)
  while (last > 0 && lines[last]?.trim() === '') last--
  return last
}

/** The line at or above `line` whose value begins with a quote that the line does not close. */
function openQuote (lines: readonly string[], line: number): number | undefined {
  for (let at = line; at >= 0; at--) {
    const value = /^[^:]*:[ \t]+(["'].*)$/.exec(lines[at] ?? '')?.[1]
    if (value !== undefined && (value.length === 1 || !value.trimEnd().endsWith(value.charAt(0)))) return at
  }
  return undefined
}

/** Whether a field follows a line of the same depth that has text but no colon. */
function isKeyAfterText (line: string, before: string): boolean {
  const depth = (text: string): number => text.length - text.trimStart().length
  return depth(line) === depth(before) && /:(?:[ \t]|$)/.test(line) && !/:(?:[ \t]|$)|^[ \t]*(?:#|-[ \t])/.test(before)
}
