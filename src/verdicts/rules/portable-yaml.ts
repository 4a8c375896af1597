import { COLLECTION_STYLE, EVENT_ID, type Event, parseEvents, SCALAR_STYLE } from 'js-yaml'
import { locateFrontmatter } from '../../core/format/fences.ts'
import { fieldPositions } from '../../core/format/positions.ts'
import { MAX_FRONTMATTER_DEPTH } from '../../core/shared/limits.ts'
import type { Finding } from '../../core/shared/skill.ts'
import { quote } from '../../core/shared/text.ts'
import { finding, type FindingCode } from '../findings.ts'
import { frontmatterOf, type Subject } from '../subject.ts'

/** Lines of one skill that are reported; an author who has fixed these sees the next ones. */
const MAX_LINES = 10

/** Something in the frontmatter on which readers of YAML disagree. */
interface Place {
  readonly code: 'yaml_not_portable' | 'frontmatter_flow_style'
  readonly what: string
  readonly fix: string
  /** Whether a finding about the type of the same value says it already. */
  readonly isShape?: boolean
}

interface LocatedPlace extends Place {
  readonly line: number
  readonly column: number
  /** The top-level field that it is in. */
  readonly field: string | undefined
}

const FLOW_STYLE: Place = {
  code: 'frontmatter_flow_style',
  what: 'a list or mapping in brackets',
  fix: 'Write lists and mappings as indented lines',
  isShape: true
}
const BYTE_ORDER_MARK = notPortable('a byte order mark', 'Save SKILL.md as UTF-8 without a byte order mark')
const BLANKS_AFTER_FENCE = notPortable("blanks after its '---'", "Remove the blanks after '---'")
const ANCHOR_OR_TAG = notPortable('an anchor or a tag', "Remove the word that begins with '&' or '!'")

/** What is not portable wherever it stands between the fences. */
const MARKS: ReadonlyArray<readonly [mark: RegExp, place: Place]> = [
  [/\t/g, notPortable('a tab', 'Write blanks instead of the tab')],
  [/---|^\.\.\./gm, notPortable("'---' or '...', where some readers end the frontmatter", 'Write it in another way')],
  [/^[ -]*\?(?= )/gm, notPortable("a key after '?'", "Write the key without '?'")],
  [/^ +(?=[^\s#])/g, notPortable('fields that are indented', 'Begin the fields at the start of the line')],
  [/\r(?!\n)|[\f\x7f-\x9f\u2028\u2029\ufffe\uffff]/g,
    notPortable('a character that some readers refuse, or take for a line end', 'Remove the character')]
]

/** Values without quotes that are text to some readers of YAML 1.1 or 1.2, and something else to others. */
const IMPLICIT_TYPES: ReadonlyArray<readonly [form: RegExp, type: string]> = [
  [/^(?:y|n|yes|no|on|off)$/i, 'true or false'],
  [/^[-+]?\.(?:inf|nan)$/i, 'a number'],
  [/^\d{4}-\d\d?-\d\d?(?:(?:[Tt]|[ \t]+)\d.*)?$/, 'a date'],
  [/^(?=.*\d)[-+]?(?:0[box][\da-f_]+|[\d_]*\.?[\d_]*(?:e[-+]?\d+)?|[\d_]+(?::[\d_.]+)+)$/i, 'a number'],
  [/^(?:=|<<)$/, 'a keyword']
]
/** What every reader takes as the same number. */
const PLAIN_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/

/** An escape for half of a character, or for one beyond the last. Others are the same in YAML 1.1 and 1.2. */
const BAD_ESCAPE = /\\(?:u[Dd][89A-Fa-f][\dA-Fa-f]{2}|U(?!00(?:0[\dA-Fa-f]|10))[\dA-Fa-f]{8})/
const ESCAPE = /\\(?:u.{4}|U.{8}|[^])/g

/** What asks for text in the place of a list, a mapping or a number. */
const SHAPE_CODES: ReadonlySet<string> = new Set<FindingCode>([
  'name_not_text', 'description_not_text', 'license_not_text', 'compatibility_not_text', 'metadata_not_mapping',
  'metadata_not_text', 'allowed_tools_not_text', 'allowed_tools_list'
])

/** Findings on YAML that readers take in different ways: one for each line. */
export function portabilityFindings (subject: Subject): readonly Finding[] {
  const { skill: { findings: others } } = subject
  const isSaid = ({ code, line, field, isShape = false }: LocatedPlace): boolean => others.some((other) =>
    (other.code.startsWith('yaml_') && other.line === line) ||
    (isShape && SHAPE_CODES.has(other.code) &&
      (other.line === line || (code === 'frontmatter_flow_style' && other.field === field))))
  const firsts = new Map<string, Finding>()
  for (const place of placesOf(subject)) {
    const { code, what, fix, line, column } = place
    // Brackets are one habit of an author.
    const key = code === 'frontmatter_flow_style' ? code : String(line)
    if (isSaid(place) || firsts.has(key)) continue
    firsts.set(key, finding(code, `line ${line} of SKILL.md has ${what}`, fix, undefined, { line, column }))
    if (firsts.size === MAX_LINES) break
  }
  return [...firsts.values()]
}

/** Whether the field that a finding is about has brackets. */
export function hasBrackets (subject: Subject, { field }: Finding): boolean {
  return field !== undefined &&
    placesOf(subject).some((place) => place.code === 'frontmatter_flow_style' && place.field === field)
}

/** All places, in the order of the text. What is not YAML has no values. */
function placesOf (subject: Subject): readonly LocatedPlace[] {
  const source = frontmatterOf(subject)
  if (source === undefined) return []
  const found = [...MARKS.flatMap(([mark, place]) =>
    Array.from(source.matchAll(mark), ({ index }) => [index, place] as const)), ...eventPlaces(source)]
  const fields = new Map(Array.from(fieldPositions(source), ([field, { line }]) => [line, field]))
  let [line, lineStart, field] = [2, 0, fields.get(2)]
  const [opening, closing] = fencePlaces(subject)
  const located = found.toSorted(([a], [b]) => a - b).map(([offset, place]): LocatedPlace => {
    for (let end = source.indexOf('\n', lineStart); end !== -1 && end < offset; end = source.indexOf('\n', lineStart)) {
      lineStart = end + 1
      line++
      field = fields.get(line) ?? field
    }
    return { ...place, line, column: offset - lineStart + 1, field }
  })
  const last = source.split('\n').length + 1
  return [
    ...opening === undefined ? [] : [{ ...opening, line: 1, column: 1, field: undefined }],
    ...located,
    ...closing === undefined ? [] : [{ ...closing, line: last, column: 1, field: undefined }]
  ]
}

function fencePlaces ({ mainFile = Buffer.alloc(0) }: Subject): ReadonlyArray<Place | undefined> {
  const location = locateFrontmatter(mainFile)
  if (location.kind !== 'found') return []
  const hasBlanks = (start: number, end: number) => /[ \t]/.test(mainFile.toString('latin1', start, end))
  const hasMark = mainFile[0] !== 0x2d
  return [
    hasMark ? BYTE_ORDER_MARK : hasBlanks(0, location.start) ? BLANKS_AFTER_FENCE : undefined,
    hasBlanks(location.end, location.bodyStart) ? BLANKS_AFTER_FENCE : undefined
  ]
}

function eventPlaces (source: string): ReadonlyArray<readonly [offset: number, place: Place]> {
  try {
    return parseEvents(source, { maxDepth: MAX_FRONTMATTER_DEPTH }).flatMap((event) => placesOfEvent(event, source))
  } catch {
    return []
  }
}

function placesOfEvent (event: Event, source: string): Array<readonly [offset: number, place: Place]> {
  if (!('tagStart' in event)) return []
  const places: Array<readonly [number, Place]> = []
  const mark = Math.max(event.anchorStart, event.tagStart)
  if (mark !== -1) places.push([mark, ANCHOR_OR_TAG])
  if (event.type !== EVENT_ID.SCALAR) {
    if (event.style === COLLECTION_STYLE.FLOW) places.push([event.start, FLOW_STYLE])
    return places
  }
  const { style, valueStart, valueEnd } = event
  const value = source.slice(valueStart, valueEnd)
  if (style === SCALAR_STYLE.PLAIN) {
    const type = implicitTypeOf(value)
    if (type !== undefined) {
      const what = `${quote(value)} without quotes, which is ${type} to some readers and text to others`
      places.push([valueStart, { ...notPortable(what, `Put ${quote(value)} in double quotes`), isShape: true }])
    }
  } else if (style === SCALAR_STYLE.DOUBLE_QUOTED) {
    for (const { 0: escape, index } of value.matchAll(ESCAPE)) {
      if (!BAD_ESCAPE.test(escape)) continue
      const what = `the escape ${quote(escape)}, which is no whole character: some readers refuse it`
      places.push([valueStart + index, notPortable(what, 'Write the character itself')])
    }
  }
  return places
}

/** What a value without quotes is to some readers, where it is text to others. */
export function implicitTypeOf (value: string): string | undefined {
  return PLAIN_NUMBER.test(value) ? undefined : IMPLICIT_TYPES.find(([form]) => form.test(value))?.[1]
}

function notPortable (what: string, fix: string): Place {
  return { code: 'yaml_not_portable', what, fix }
}
