import { finding, type Position } from './findings.ts'
import { BYTE_ORDER_MARK, HIDDEN_KINDS, type HiddenKind, hiddenKindOf } from './hidden-characters.ts'
import { ADVISED_MAIN_FILE_LINES } from '../shared/limits.ts'
import type { Finding } from '../shared/skill.ts'

/** The characters of which `hiddenKindOf` may say that they are hidden. */
const CANDIDATES = new RegExp(String.raw`[^\P{Cc}\t\n\f\r]|[\u200b-\u200d\u202a-\u202e\u2060\u2066-\u2069]|` +
  String.raw`[\ufeff\u{e0000}-\u{e007f}]|\p{Variation_Selector}`, 'gu')

/** Findings about the whole text of a main file: its length and its hidden characters. */
export function checkContent (text: string): Finding[] {
  const firsts = new Map<HiddenKind, Position>()
  for (const { 0: character, index } of text.matchAll(CANDIDATES)) {
    const codePoint = character.codePointAt(0) ?? 0
    if (codePoint === BYTE_ORDER_MARK && index === 0) continue
    const kind = hiddenKindOf(codePoint, codePointBefore(text, index))
    if (kind !== undefined && !firsts.has(kind)) firsts.set(kind, positionAt(text, index))
  }
  const findings = Array.from(firsts, ([kind, first]) => finding(kind,
    `SKILL.md contains ${HIDDEN_KINDS[kind]}, the first in line ${first.line}`,
    `Remove the ${HIDDEN_KINDS[kind]} from SKILL.md, beginning in line ${first.line}`, undefined, first))
  const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
  if (lines > ADVISED_MAIN_FILE_LINES) {
    findings.push(finding('many_lines',
      `SKILL.md has ${lines} lines, more than the ${ADVISED_MAIN_FILE_LINES} that the format advises`,
      'Move details from SKILL.md into other files of the skill', undefined,
      { line: ADVISED_MAIN_FILE_LINES + 1, column: 1 }))
  }
  return findings
}

function positionAt (text: string, index: number): Position {
  const before = text.slice(0, index)
  return { line: before.split('\n').length, column: index - before.lastIndexOf('\n') }
}

function codePointBefore (text: string, index: number): number | undefined {
  const pair = index > 1 ? text.codePointAt(index - 2) : undefined
  return pair !== undefined && pair > 0xffff ? pair : index > 0 ? text.codePointAt(index - 1) : undefined
}
