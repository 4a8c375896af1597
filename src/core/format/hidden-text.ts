import { finding, type FindingCode, type Position } from './findings.ts'
import { ADVISED_MAIN_FILE_LINES } from '../ground/limits.ts'
import type { Finding } from '../ground/skill.ts'

const TAB = 0x09
const LF = 0x0a
const FF = 0x0c
const CR = 0x0d
const BLANK = 0x20
const DEL = 0x7f

/** The lowest first byte, in UTF-8, of all characters in `hiddenKindOf`. */
const FIRST_HIDDEN_LEAD = 0xe2

/** Names of the text that a model reads and a person does not see, by finding code. */
const HIDDEN_KINDS = {
  control_characters: 'control characters',
  zero_width_characters: 'zero-width characters',
  bidi_control_characters: 'characters that change the direction of text',
  hidden_tag_characters: 'invisible tag characters'
} as const satisfies Partial<Record<FindingCode, string>>

type HiddenKind = keyof typeof HIDDEN_KINDS

/**
 * Findings about the whole text of a main file: its length and its hidden characters. One pass over the bytes, without
 * decoding them: every main file is checked.
 *
 * @param bytes the whole file, valid UTF-8
 */
export function checkContent (bytes: Buffer): Finding[] {
  const firsts = new Map<HiddenKind, Position>()
  let line = 1
  let lineStart = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0
    if (byte === LF) {
      line++
      lineStart = i + 1
    }
    if (byte >= BLANK && byte < FIRST_HIDDEN_LEAD && byte !== DEL) continue
    const kind = hiddenKindAt(bytes, i, byte)
    if (kind !== undefined && !firsts.has(kind)) firsts.set(kind, { line, column: bytes.toString('utf8', lineStart, i).length + 1 })
  }

  const findings = Array.from(firsts, ([kind, first]) => finding(kind,
    `SKILL.md contains ${HIDDEN_KINDS[kind]}, the first in line ${first.line}`,
    `Remove the ${HIDDEN_KINDS[kind]} from SKILL.md, beginning in line ${first.line}`, undefined, first))
  const lines = bytes[bytes.length - 1] === LF ? line - 1 : line
  if (lines > ADVISED_MAIN_FILE_LINES) {
    findings.push(finding('many_lines', `SKILL.md has ${lines} lines, more than the ${ADVISED_MAIN_FILE_LINES} that the format advises`,
      'Move details from SKILL.md into other files of the skill', undefined, { line: ADVISED_MAIN_FILE_LINES + 1, column: 1 }))
  }
  return findings
}

function hiddenKindAt (bytes: Buffer, at: number, byte: number): HiddenKind | undefined {
  if (byte <= DEL) return byte === TAB || byte === LF || byte === FF || byte === CR ? undefined : 'control_characters'
  const second = bytes[at + 1] ?? 0
  const third = bytes[at + 2] ?? 0
  if (byte >= 0xf0) return byte === 0xf3 && second === 0xa0 && third <= 0x81 ? 'hidden_tag_characters' : undefined
  return hiddenKindOf((byte & 0x0f) << 12 | (second & 0x3f) << 6 | (third & 0x3f), bytes, at)
}

function hiddenKindOf (codePoint: number, bytes: Buffer, at: number): HiddenKind | undefined {
  switch (codePoint) {
    case 0x200b: // zero width space
    case 0x2060: // word joiner
      return 'zero_width_characters'
    case 0xfeff: // at the start of the file it is the byte order mark
      return at === 0 ? undefined : 'zero_width_characters'
    case 0x200c: // the joiners belong to the spelling of some scripts and to emoji: they hide only after ASCII
    case 0x200d:
      return (bytes[at - 1] ?? DEL) < DEL ? 'zero_width_characters' : undefined
  }
  const isOverride = codePoint >= 0x202a && codePoint <= 0x202e
  const isIsolate = codePoint >= 0x2066 && codePoint <= 0x2069
  return isOverride || isIsolate ? 'bidi_control_characters' : undefined
}
