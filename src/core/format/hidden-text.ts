import { ADVISED_MAIN_FILE_LINES } from '../shared/limits.ts'
import type { Finding } from '../shared/skill.ts'
import { finding, type Position } from './findings.ts'

/** Text that a model reads and a person does not see. */
const KINDS = {
  control_characters: 'control characters',
  zero_width_characters: 'zero-width characters',
  bidi_control_characters: 'characters that change the direction of text',
  hidden_tag_characters: 'invisible tag characters'
} as const

type HiddenKind = keyof typeof KINDS

const ZERO_WIDTH = '\\u200b\\u2060\\ufeff'
const BIDI = '\\u202a-\\u202e\\u2066-\\u2069'
const TAGS = '\\u{e0000}-\\u{e007f}'

/** Zero-width joiners are legitimate in some scripts and in emoji, but not after ASCII or a hidden character. */
const JOINER = `(?<![^\\0-\\x7f\\p{Cc}\\u200c-\\u200d${ZERO_WIDTH}${BIDI}${TAGS}])[\\u200c-\\u200d]`
/** A variation selector selects a form of the character before it. Several in a row can encode hidden bytes. */
const VARIATION = '(?<=\\p{Variation_Selector})\\p{Variation_Selector}'

const HIDDEN = new RegExp([
  '(?<control_characters>[^\\P{Cc}\\t\\n\\f\\r])',
  `(?<zero_width_characters>[${ZERO_WIDTH}]|${JOINER}|${VARIATION})`,
  `(?<bidi_control_characters>[${BIDI}])`,
  `(?<hidden_tag_characters>[${TAGS}])`
].join('|'), 'gu')
const HIDDEN_HERE = new RegExp(HIDDEN, 'uy')

/** Returns the kind of hidden text at an index. A byte order mark counts. */
export function hiddenKindAt (text: string, index: number): HiddenKind | undefined {
  HIDDEN_HERE.lastIndex = index
  const match = HIDDEN_HERE.exec(text)
  return match === null ? undefined : kindOf(match)
}

function kindOf ({ groups = {} }: RegExpExecArray): HiddenKind | undefined {
  return (Object.keys(KINDS) as HiddenKind[]).find((kind) => groups[kind] !== undefined)
}

/** Checks the length and the hidden characters of a main file. */
export function checkContent (text: string): Finding[] {
  const firsts = new Map<HiddenKind, Position>()
  for (const match of text.matchAll(HIDDEN)) {
    const kind = kindOf(match)
    const isMark = match.index === 0 && text.startsWith('\ufeff')
    if (kind !== undefined && !isMark && !firsts.has(kind)) firsts.set(kind, positionAt(text, match.index))
  }
  const findings = Array.from(firsts, ([kind, first]) => finding(kind,
    `SKILL.md contains ${KINDS[kind]}, the first in line ${first.line}`,
    `Remove the ${KINDS[kind]} from SKILL.md, beginning in line ${first.line}`, undefined, first))
  const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
  if (lines > ADVISED_MAIN_FILE_LINES) {
    findings.push(finding('many_lines',
      `SKILL.md has ${lines} lines, more than the ${ADVISED_MAIN_FILE_LINES} that the format advises`,
      'Move details from SKILL.md into other files of the skill', undefined,
      { line: ADVISED_MAIN_FILE_LINES + 1, column: 1 }))
  }
  return findings
}

export function positionAt (text: string, index: number): Position {
  const before = text.slice(0, index)
  return { line: before.split('\n').length, column: index - before.lastIndexOf('\n') }
}
