import { COLLECTION_STYLE, EVENT_ID, type Event, parseEvents, SCALAR_STYLE } from 'js-yaml'
import { locateFrontmatter } from '../../core/format/fences.ts'
import { positionAt } from '../../core/format/hidden-text.ts'
import { fieldPositions } from '../../core/format/positions.ts'
import { MAX_FRONTMATTER_BYTES, MAX_FRONTMATTER_DEPTH } from '../../core/shared/limits.ts'
import type { Finding } from '../../core/shared/skill.ts'
import { quote } from '../../core/shared/text.ts'
import { finding, type FindingCode } from '../findings.ts'

/** Most lines of one skill that are reported: an author who has fixed these sees the next ones. */
const MAX_LINES = 10

/** Something on which parsers of YAML disagree. */
interface Construct {
  readonly offset: number
  readonly what: string
  readonly fix: string
  readonly code?: FindingCode
}

type Marks = ReadonlyArray<readonly [mark: RegExp, what: string, fix: string]>

/** Marks that are not portable anywhere between the fences. */
const MARKS: Marks = [
  [/\t/g, 'a tab', 'Write spaces instead of the tab'],
  [/---|^\.\.\./gm, "'---' or '...', where some readers end the frontmatter", 'Write it in another way'],
  [/^[ -]*\?(?= )/gm, "a key after '?'", "Write the key without '?'"],
  [/^ +(?=[^\s#])/g, 'fields that are indented', 'Begin the fields at the start of the line'],
  [/\r(?!\n)|[\f\x7f-\x9f\u2028\u2029\ufffe\uffff]/g, 'a character that some readers refuse, or take for a line end',
    'Remove the character']
]
const FENCE_MARKS: Marks = [
  [/\uFEFF/g, 'a byte order mark', 'Save SKILL.md as UTF-8 without a byte order mark'],
  [/---(?=[ \t])/g, "spaces after its '---'", "Remove the spaces after '---'"]
]

/** Values without quotes that some parsers of YAML 1.1 or 1.2 read as text, and others as another type. */
const IMPLICIT_TYPES: ReadonlyArray<readonly [form: RegExp, type: string]> = [
  [/^(?:y|n|yes|no|on|off)$/i, 'true or false'],
  [/^[-+]?\.(?:inf|nan)$/i, 'a number'],
  [/^\d{4}-\d\d?-\d\d?(?:(?:[Tt]|[ \t]+)\d.*)?$/, 'a date'],
  [/^(?=.*\d)[-+]?(?:0[box][\da-f_]+|[\d_]*\.?[\d_]*(?:e[-+]?\d+)?|[\d_]+(?::[\d_.]+)+)$/i, 'a number'],
  [/^(?:=|<<)$/, 'a keyword']
]
/** A number that every parser reads in the same way. */
const PLAIN_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/

/** Escape for half of a character, or for one beyond the last. Other escapes are the same in YAML 1.1 and 1.2. */
const BAD_ESCAPE = /\\(?:u[Dd][89A-Fa-f][\dA-Fa-f]{2}|U(?!00(?:0[\dA-Fa-f]|10))[\dA-Fa-f]{8})/
const ESCAPE = /\\(?:u.{4}|U.{8}|[^])/g

/** Reports YAML that parsers read in different ways: one finding for each line, and one for all brackets. */
export function portabilityFindings (mainFile: Buffer): readonly Finding[] {
  const location = locateFrontmatter(mainFile)
  if (location.kind !== 'found' || location.end - location.start > MAX_FRONTMATTER_BYTES) return []
  const { start, end, bodyStart } = location
  const opening = mainFile.toString('utf8', 0, start)
  const source = mainFile.toString('utf8', start, end)
  const closing = mainFile.toString('utf8', end, bodyStart)
  const fields = [...fieldPositions(source)]
  const firsts = new Map<unknown, Finding>()
  const constructs = [
    ...marksIn(opening, FENCE_MARKS),
    ...[...marksIn(source, MARKS), ...nodesIn(source)].map(moveBy(opening.length)),
    ...marksIn(closing, FENCE_MARKS).map(moveBy(opening.length + source.length))
  ]
  for (const { offset, what, fix, code = 'yaml_not_portable' } of constructs.toSorted((a, b) => a.offset - b.offset)) {
    const position = positionAt(`${opening}${source}${closing}`, offset)
    const { line } = position
    const isFlowStyle = code === 'frontmatter_flow_style'
    const key = isFlowStyle ? code : line
    if (firsts.has(key) || firsts.size === MAX_LINES) continue
    const field = isFlowStyle ? fields.findLast(([, begin]) => begin.line <= line)?.[0] : undefined
    firsts.set(key, finding(code, `line ${line} of SKILL.md has ${what}`, fix, field, position))
  }
  return [...firsts.values()]
}

function moveBy (distance: number): (construct: Construct) => Construct {
  return (construct) => ({ ...construct, offset: construct.offset + distance })
}

function marksIn (text: string, marks: Marks): Construct[] {
  return marks.flatMap(([mark, what, fix]) =>
    Array.from(text.matchAll(mark), ({ index: offset }) => ({ offset, what, fix })))
}

/** Finds anchors, tags, brackets, values of implicit types and escapes. What is not YAML has none. */
function nodesIn (source: string): Construct[] {
  try {
    return parseEvents(source, { maxDepth: MAX_FRONTMATTER_DEPTH }).flatMap((event) => constructsOf(event, source))
  } catch {
    return []
  }
}

function constructsOf (event: Event, source: string): Construct[] {
  if (!('tagStart' in event)) return []
  const constructs: Construct[] = []
  const offset = Math.max(event.anchorStart, event.tagStart)
  const remove = "Remove the word that begins with '&' or '!'"
  if (offset !== -1) constructs.push({ offset, what: 'an anchor or a tag', fix: remove })
  if (event.type !== EVENT_ID.SCALAR) {
    if (event.style !== COLLECTION_STYLE.FLOW) return constructs
    const [what, fix] = ['a list or mapping in brackets', 'Write lists and mappings as indented lines']
    return [...constructs, { offset: event.start, what, fix, code: 'frontmatter_flow_style' }]
  }
  const { style, valueStart, valueEnd } = event
  const value = source.slice(valueStart, valueEnd)
  const type = style === SCALAR_STYLE.PLAIN ? implicitTypeOf(value) : undefined
  if (type !== undefined) {
    const what = `${quote(value)} without quotes, which is ${type} to some readers and text to others`
    constructs.push({ offset: valueStart, what, fix: `Put ${quote(value)} in double quotes` })
  }
  for (const { 0: escape, index } of style === SCALAR_STYLE.DOUBLE_QUOTED ? value.matchAll(ESCAPE) : []) {
    if (!BAD_ESCAPE.test(escape)) continue
    const what = `the escape ${quote(escape)}, which is not a complete character: some readers refuse it`
    constructs.push({ offset: valueStart + index, what, fix: 'Write the character itself' })
  }
  return constructs
}

/** Returns what a value without quotes is to some parsers, where it is text to others. */
export function implicitTypeOf (value: string): string | undefined {
  return PLAIN_NUMBER.test(value) ? undefined : IMPLICIT_TYPES.find(([form]) => form.test(value))?.[1]
}
