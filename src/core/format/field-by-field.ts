import { isJsonObject } from '../shared/json.ts'
import type { Finding } from '../shared/skill.ts'
import { finding, quoteList } from './findings.ts'
import { quote } from '../shared/text.ts'
import { failureFinding, INDENTED_REASON, isAliased, linesOf, NO_FIELD_REASON, lineName, readLenientYaml, startOf, type YamlFailure } from './yaml.ts'

/** What can be read of a frontmatter that is not valid YAML as a whole. */
export interface ReadableFields {
  readonly entries: ReadonlyArray<readonly [string, unknown]>
  /** Fields whose plain text was read as it stands. */
  readonly repaired: readonly string[]
  /** Fields that were not read, or not as a whole: each has a finding. */
  readonly broken: ReadonlySet<string>
  /** One for each field, or line, that is wrong, in the order of the lines. */
  readonly findings: readonly Finding[]
}

/** Most fields that are read by themselves: each takes up to six parses of its lines. Real frontmatter has up to 30 fields. */
const MAX_FIELDS = 32

/** What people and models find a skill by: read first, so that no number of other fields takes it away. */
const NAME_AND_PURPOSE: ReadonlySet<string> = new Set(['name', 'description'])

/** A field's first line, and those up to the next field. */
interface Block {
  /** Empty for the lines before the first field. */
  readonly field: string
  /** The first line, counted from 0. */
  readonly start: number
  readonly lines: readonly string[]
}

interface ReadBlock {
  readonly entries: ReadonlyArray<readonly [string, unknown]>
  readonly isRepaired?: boolean
  readonly problem?: { readonly line: number, readonly finding: Finding, readonly isMended?: boolean }
}

const COLON = /:(?:[ \t]|$)/
const NO_FIELD_START = /^(?:$|[\s#[\]{},&*!|>%@`]|[-?](?:[ \t]|$))/
const FLOW_VALUE = /^[^:]*:[ \t]+[[{]/
const FLOW_PART = /^["'[\]{},]/
const BLANK_OR_COMMENT = /^[ \t]*(?:#|$)/
const DOCUMENT_MARK = /^(?:---|\.\.\.)/

/**
 * Reads each top-level field by itself, so that a mistake in one takes nothing from the others. Of several fields with one
 * name the first counts. A description in one line that is not YAML is kept as text. Never throws.
 * @param whole why the frontmatter cannot be read as a whole
 * @returns undefined when no line begins a field
 */
export function readFieldByField (source: string, whole: YamlFailure): ReadableFields | undefined {
  const blocks = splitIntoBlocks(linesOf(source))
  if (blocks.every(({ field }) => field === '')) return undefined
  const entries = new Map<string, unknown>()
  const repaired: string[] = []
  const broken = new Set<string>()
  const problems: Array<{ readonly line: number, readonly finding: Finding }> = []

  const ranked = [...blocks].sort((a, b) => rank(a) - rank(b))
  for (const block of ranked.slice(0, MAX_FIELDS)) {
    const { field } = block
    const { entries: read, isRepaired, problem } = entries.has(field) || broken.has(field) ? repeated(block) : readBlock(block, isAliased(whole))
    for (const [key, value] of read) if (!entries.has(key)) entries.set(key, value)
    if (isRepaired) repaired.push(field)
    if (problem === undefined) continue
    problems.push(problem)
    if (!problem.isMended) broken.add(field)
  }
  // Each of these fields is right by itself, so the mistake is in one that was not read.
  if (problems.length === 0 && repaired.length === 0) problems.push({ line: 0, finding: failureFinding(whole) })
  problems.push(...unreadProblem(ranked.slice(MAX_FIELDS)))
  return { entries: [...entries], repaired, broken, findings: problems.sort((a, b) => a.line - b.line).map(({ finding }) => finding) }
}

function unreadProblem (blocks: readonly Block[]): ReadonlyArray<{ readonly line: number, readonly finding: Finding }> {
  const [first] = blocks
  if (first === undefined) return []
  const { start: line } = first
  return [{
    line,
    finding: finding('yaml_invalid', `of frontmatter that is not valid YAML only ${MAX_FIELDS} fields are read, and not ${quoteList(blocks.map(({ field }) => field))}`,
      'Correct the other lines that are not valid YAML: then all fields are read', undefined, startOf(line))
  }]
}

function rank ({ field }: Block): number {
  return NAME_AND_PURPOSE.has(field) ? 0 : 1
}

function splitIntoBlocks (lines: readonly string[]): Block[] {
  const blocks: Array<Block & { readonly lines: string[] }> = []
  for (const [index, line] of lines.entries()) {
    const current = blocks.at(-1)
    const field = fieldOf(line)
    const isFlowPart = current !== undefined && FLOW_PART.test(line) && FLOW_VALUE.test(current.lines[0] ?? '')
    if (field !== undefined && !isFlowPart) blocks.push({ field, start: index, lines: [line] })
    else if (current !== undefined) current.lines.push(line)
    else if (!BLANK_OR_COMMENT.test(line)) blocks.push({ field: '', start: index, lines: [line] })
  }
  return blocks
}

/** The field that begins in this line. */
function fieldOf (line: string): string | undefined {
  if (NO_FIELD_START.test(line)) return undefined
  const colon = line.search(COLON)
  const key = line.slice(0, Math.max(colon, 0)).trim()
  return (/^"([^"\\]*)"$|^'([^']*)'$/.exec(key)?.slice(1).join('') ?? key) || undefined
}

function repeated ({ field, start: line }: Block): ReadBlock {
  return { entries: [], problem: { line, finding: failureFinding({ kind: 'failure', reason: 'duplicated mapping key', line }, field) } }
}

/** @param isAliased whether the frontmatter has aliases, whose anchors may be in other blocks */
function readBlock (block: Block, isAliased: boolean): ReadBlock {
  const { field, start, lines } = block
  if (field === '') return readLinesBefore(block, isAliased)
  const whole = readLines(lines, isAliased)
  if (whole.failure === undefined) return whole
  const margin = lines.findIndex(isAtMargin)
  if (margin !== -1 && FLOW_VALUE.test(lines[0] ?? '')) {
    const indented = readLines(lines.map((line, index) => isAtMargin(line, index) ? ` ${line}` : line), isAliased)
    if (indented.failure === undefined) {
      return { entries: indented.entries, problem: { line: start + margin, finding: marginFinding(field, start + margin), isMended: true } }
    }
  }
  const wrong = margin === -1 ? whole.failure.line ?? 0 : margin
  const reason = margin === -1 || DOCUMENT_MARK.test(lines[margin] ?? '') ? whole.failure.reason : NO_FIELD_REASON
  return {
    entries: wrong === 0 ? textOf(block) : readLines(lines.slice(0, wrong), isAliased).entries.filter(([, value]) => value !== null),
    problem: { line: start + wrong, finding: failureFinding({ kind: 'failure', reason, line: start + wrong }, field) }
  }
}

/** Whether a line is neither indented nor a comment nor an item of a list, all of which may go on with a field. */
function isAtMargin (line: string, index: number): boolean {
  return index > 0 && /^[^\s#]/.test(line) && !/^-(?:[ \t]|$)/.test(line)
}

/** Lines that are indented may be fields still. */
function readLinesBefore ({ start: line, lines }: Block, isAliased: boolean): ReadBlock {
  const { entries, failure } = readLines(lines, isAliased)
  const reason = failure === undefined ? INDENTED_REASON : DOCUMENT_MARK.test(lines[0] ?? '') ? failure.reason : NO_FIELD_REASON
  return { entries, problem: { line, finding: failureFinding({ kind: 'failure', reason, line }) } }
}

function readLines (lines: readonly string[], isAliased: boolean): ReadBlock & { readonly failure?: YamlFailure } {
  const { outcome, repaired } = readLenientYaml(lines.join('\n'), isAliased)
  if (outcome.kind === 'failure') return { entries: [], failure: outcome }
  return { ...toEntries(outcome.value), isRepaired: repaired.length > 0 }
}

function toEntries (value: unknown): ReturnType<typeof readLines> {
  return isJsonObject(value) ? { entries: Object.entries(value) } : { entries: [], failure: { kind: 'failure', reason: NO_FIELD_REASON, line: 0 } }
}

/** People and models find a skill by its description, so that text that is not YAML is better than none. */
function textOf ({ field, lines: [line = '', ...more] }: Block): ReadBlock['entries'] {
  if (field !== 'description' || !more.every((text) => BLANK_OR_COMMENT.test(text))) return []
  return [[field, line.slice(line.search(COLON) + 1).trim()]]
}

function marginFinding (field: string, line: number): Finding {
  return finding('yaml_repaired', `${lineName(line)} is not indented and was read as a part of ${quote(field)}`, `Indent ${lineName(line)} by two spaces`, field, startOf(line))
}
