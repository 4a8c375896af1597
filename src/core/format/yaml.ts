import { load, YAMLException } from 'js-yaml'
import { finding } from './findings.ts'
import { quote } from '../shared/text.ts'
import { MAX_FRONTMATTER_DEPTH } from '../shared/limits.ts'
import type { Finding } from '../shared/skill.ts'

export interface YamlFailure {
  readonly kind: 'failure'
  readonly reason: string
  /** The line that is wrong, counted from 0. */
  readonly line: number | undefined
}

type YamlMark = { readonly line: number, readonly column: number }

type YamlOutcome = YamlFailure | { readonly kind: 'value', readonly value: unknown }

/**
 * Beginnings of js-yaml's reasons: its two limits, and an input without a document, which is not a syntax error here.
 */
const TOO_DEEP = 'nesting exceeded'
const ALIASED = 'aliases exceeded'
const EMPTY = 'expected a document'

/**
 * The reason for a value such as `*.ts`, which begins like an alias and is none. Enough aliases are read to find it.
 */
const NO_ANCHOR = 'unidentified alias'
const MAX_TRIED_ALIASES = 1_000

/** js-yaml finds these two where the next entry begins. */
const NO_COLON = 'can not read a block mapping entry'
const NO_COMMA = 'missed comma'

/** The fix of a syntax error, by js-yaml's reason. */
const SYNTAX_FIXES: ReadonlyArray<readonly [RegExp, (where: string) => string]> = [
  [/^duplicated mapping key/, where => `Remove the field in ${where} or the other one of the same name`],
  [/^tab characters/, where => `Indent ${where} with spaces instead of tabs`],
  [
    /^the stream contains non-printable|^expected valid JSON character|^null byte/,
    where => `Remove the control characters from ${where}`
  ],
  [/^unidentified alias/, where => `Put the value in ${where} that begins with '*' in double quotes`],
  [/^unknown escape/, where => `Write every backslash in ${where} twice`],
  [/^unknown \w+ tag|^undeclared tag/, where => `Put the value in ${where} that begins with '!' in double quotes`],
  [/^expected a single document/, () => "Remove the lines that begin with '---' or '...' from the frontmatter"],
  [
    /^can not read a block mapping entry/,
    where => `Write ${where} as 'field: value', or indent it as a part of the field before`
  ]
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

/** YAML 1.2 core types, no aliases, bounded depth. Never throws. */
function readYaml (source: string): YamlOutcome {
  try {
    return { kind: 'value', value: load(source, { maxDepth: MAX_FRONTMATTER_DEPTH, maxAliases: 0 }) }
  } catch (error) {
    if (!(error instanceof YAMLException)) return { kind: 'failure', reason: 'it cannot be read', line: undefined }
    if (error.reason.startsWith(EMPTY)) return { kind: 'value', value: null }
    const { reason, mark } = error.reason.startsWith(ALIASED) ? withoutAnchor(source) ?? error : error
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

/**
 * If js-yaml fails, a second pass takes the refused one-line values as text. What was refused by intent stays
 * refused.
 */
export function readLenientYaml (source: string): LenientOutcome {
  const asWritten = readYaml(source)
  if (asWritten.kind === 'value' || isRefusal(asWritten)) return { outcome: asWritten, repaired: [] }
  const { text, fields } = quotePlainValues(source)
  const outcome = fields.length > 0 ? readYaml(text) : asWritten
  return outcome.kind === 'value' ? { outcome, repaired: fields } : { outcome: asWritten, repaired: [] }
}

function isRefusal ({ reason }: YamlFailure): boolean {
  return reason.startsWith(TOO_DEEP) || reason.startsWith(ALIASED)
}

function linesOf (source: string): string[] {
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

/** The finding of what js-yaml refuses. */
export function failureFinding ({ reason, line }: YamlFailure): Finding {
  if (reason.startsWith(TOO_DEEP)) {
    return finding('yaml_refused', `the frontmatter is nested more than ${MAX_FRONTMATTER_DEPTH} levels deep`,
      'Flatten the frontmatter to a few levels')
  }
  if (reason.startsWith(ALIASED)) {
    return finding('yaml_refused', 'the frontmatter uses YAML aliases, which are not read',
      "Write the aliased values out, and put a value that is meant to begin with '*' in quotes")
  }
  // Lines are counted from 0 and after the opening fence.
  const position = line === undefined ? undefined : { line: line + 2, column: 1 }
  const where = position === undefined ? 'the frontmatter' : `line ${position.line} of SKILL.md`
  const fix = SYNTAX_FIXES.find(([pattern]) => pattern.test(reason))?.[1]
  return finding('yaml_invalid', `${where} is not valid YAML: ${quote(reason)}`,
    fix?.(where) ?? `Correct ${where}, or put its value in double quotes`, undefined, position)
}

/** js-yaml finds a missing colon or comma where the next entry begins. */
function wrongLine (source: string, reason: string, { line, column }: YamlMark): number {
  const lines = linesOf(source)
  const isCommaMissing = reason.startsWith(NO_COMMA) && !/[,:[{]/.test(lines[line]?.slice(0, column) ?? '')
  let last = Math.max(0, reason.startsWith(NO_COLON) || isCommaMissing ? line - 1 : Math.min(line, lines.length - 1))
  while (last > 0 && lines[last]?.trim() === '') last--
  return last
}
