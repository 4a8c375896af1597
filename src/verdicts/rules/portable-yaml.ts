import { COLLECTION_STYLE, EVENT_ID, type Event, parseEvents, SCALAR_STYLE } from 'js-yaml'
import { locateFrontmatter } from '../../core/format/fences.ts'
import { positionAt } from '../../core/format/hidden-text.ts'
import { fieldPositions } from '../../core/format/positions.ts'
import { MAX_FRONTMATTER_BYTES, MAX_FRONTMATTER_DEPTH } from '../../core/shared/limits.ts'
import type { Finding } from '../../core/shared/skill.ts'
import { quote } from '../../core/shared/text.ts'
import { finding } from '../findings.ts'

/** Lines of one skill that are reported; an author who has fixed these sees the next ones. */
const MAX_LINES = 10

/** Something in the frontmatter on which parsers of YAML disagree. */
interface Construct {
  readonly what: string
  readonly fix: string
  readonly isFlowStyle?: true
}

/** A construct, by its offset in a part of the main file. */
type Place = readonly [offset: number, construct: Construct]
type Marks = ReadonlyArray<readonly [mark: RegExp, what: string, fix: string]>

const FLOW_STYLE: Construct =
  { what: 'a list or mapping in brackets', fix: 'Write lists and mappings as indented lines', isFlowStyle: true }
const ANCHOR_OR_TAG: Construct = { what: 'an anchor or a tag', fix: "Remove the word that begins with '&' or '!'" }

/** What is not portable wherever it stands between the fences. */
const MARKS: Marks = [
  [/\t/g, 'a tab', 'Write blanks instead of the tab'],
  [/---|^\.\.\./gm, "'---' or '...', where some readers end the frontmatter", 'Write it in another way'],
  [/^[ -]*\?(?= )/gm, "a key after '?'", "Write the key without '?'"],
  [/^ +(?=[^\s#])/g, 'fields that are indented', 'Begin the fields at the start of the line'],
  [/\r(?!\n)|[\f\x7f-\x9f\u2028\u2029\ufffe\uffff]/g, 'a character that some readers refuse, or take for a line end',
    'Remove the character']
]
const FENCE_MARKS: Marks = [
  [/\uFEFF/g, 'a byte order mark', 'Save SKILL.md as UTF-8 without a byte order mark'],
  [/---(?=[ \t])/g, "blanks after its '---'", "Remove the blanks after '---'"]
]

/** Values without quotes that are text to some parsers of YAML 1.1 or 1.2, and something else to others. */
const IMPLICIT_TYPES: ReadonlyArray<readonly [form: RegExp, type: string]> = [
  [/^(?:y|n|yes|no|on|off)$/i, 'true or false'],
  [/^[-+]?\.(?:inf|nan)$/i, 'a number'],
  [/^\d{4}-\d\d?-\d\d?(?:(?:[Tt]|[ \t]+)\d.*)?$/, 'a date'],
  [/^(?=.*\d)[-+]?(?:0[box][\da-f_]+|[\d_]*\.?[\d_]*(?:e[-+]?\d+)?|[\d_]+(?::[\d_.]+)+)$/i, 'a number'],
  [/^(?:=|<<)$/, 'a keyword']
]
/** What every parser takes as the same number. */
const PLAIN_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/

/** An escape for half of a character, or for one beyond the last. Others are the same in YAML 1.1 and 1.2. */
const BAD_ESCAPE = /\\(?:u[Dd][89A-Fa-f][\dA-Fa-f]{2}|U(?!00(?:0[\dA-Fa-f]|10))[\dA-Fa-f]{8})/
const ESCAPE = /\\(?:u.{4}|U.{8}|[^])/g

/** Reports YAML that parsers take in different ways: one finding for each line, and one for all brackets. */
export function portabilityFindings (mainFile: Buffer): readonly Finding[] {
  const location = locateFrontmatter(mainFile)
  if (location.kind !== 'found' || location.end - location.start > MAX_FRONTMATTER_BYTES) return []
  const { start, end, bodyStart } = location
  const source = mainFile.toString('utf8', start, end)
  const parts = [
    { firstLine: 1, text: mainFile.toString('utf8', 0, start), marks: FENCE_MARKS },
    { firstLine: 2, text: source, marks: MARKS, events: eventsIn(source) },
    { firstLine: source.split('\n').length + 1, text: mainFile.toString('utf8', end, bodyStart), marks: FENCE_MARKS }
  ]
  const fields = [...fieldPositions(source)]
  const firsts = new Map<string, Finding>()
  for (const { firstLine, text, marks, events = [] } of parts) {
    const places = [...findMarks(text, marks), ...events.flatMap((event) => placesOfEvent(event, text))]
    for (const [offset, { what, fix, isFlowStyle }] of places.toSorted(([a], [b]) => a - b)) {
      const { line: lineInPart, column } = positionAt(text, offset)
      const line = firstLine + lineInPart - 1
      const code = isFlowStyle === true ? 'frontmatter_flow_style' : 'yaml_not_portable'
      const key = isFlowStyle === true ? code : String(line)
      if (firsts.has(key) || firsts.size === MAX_LINES) continue
      const field = isFlowStyle && fields.findLast(([, begin]) => begin.line <= line)?.[0]
      firsts.set(key, finding(code, `line ${line} of SKILL.md has ${what}`, fix, field, { line, column }))
    }
  }
  return [...firsts.values()]
}

function findMarks (text: string, marks: Marks): Place[] {
  return marks.flatMap(([mark, what, fix]) =>
    Array.from(text.matchAll(mark), ({ index }): Place => [index, { what, fix }]))
}

/** What is not YAML has no values. */
function eventsIn (source: string): readonly Event[] {
  try {
    return parseEvents(source, { maxDepth: MAX_FRONTMATTER_DEPTH })
  } catch {
    return []
  }
}

function placesOfEvent (event: Event, source: string): Place[] {
  if (!('tagStart' in event)) return []
  const places: Place[] = []
  const mark = Math.max(event.anchorStart, event.tagStart)
  if (mark !== -1) places.push([mark, ANCHOR_OR_TAG])
  if (event.type !== EVENT_ID.SCALAR) {
    if (event.style === COLLECTION_STYLE.FLOW) places.push([event.start, FLOW_STYLE])
    return places
  }
  const { style, valueStart, valueEnd } = event
  const value = source.slice(valueStart, valueEnd)
  const type = style === SCALAR_STYLE.PLAIN ? implicitTypeOf(value) : undefined
  if (type !== undefined) {
    const what = `${quote(value)} without quotes, which is ${type} to some readers and text to others`
    places.push([valueStart, { what, fix: `Put ${quote(value)} in double quotes` }])
  }
  for (const { 0: escape, index } of style === SCALAR_STYLE.DOUBLE_QUOTED ? value.matchAll(ESCAPE) : []) {
    if (!BAD_ESCAPE.test(escape)) continue
    const what = `the escape ${quote(escape)}, which is no whole character: some readers refuse it`
    places.push([valueStart + index, { what, fix: 'Write the character itself' }])
  }
  return places
}

/** What a value without quotes is to some parsers, where it is text to others. */
export function implicitTypeOf (value: string): string | undefined {
  return PLAIN_NUMBER.test(value) ? undefined : IMPLICIT_TYPES.find(([form]) => form.test(value))?.[1]
}
