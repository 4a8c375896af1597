import { finding, type Position } from './findings.ts'
import { BYTE_ORDER_MARK, dependsOnBefore, HIDDEN_KINDS, type HiddenKind, hiddenKindOf } from './hidden-characters.ts'
import { ADVISED_MAIN_FILE_LINES } from '../shared/limits.ts'
import type { Finding } from '../shared/skill.ts'

const LF = 0x0a
const BLANK = 0x20
const DEL = 0x7f

/** The first byte, in UTF-8, of the control characters beyond ASCII, and the lowest one of all others in `hiddenKindOf`. */
const CONTROL_LEAD = 0xc2
const LAST_CONTROL = 0x9f
const FIRST_HIDDEN_LEAD = 0xe2

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
    if (byte >= BLANK && byte < FIRST_HIDDEN_LEAD && byte !== DEL && (byte !== CONTROL_LEAD || (bytes[i + 1] ?? 0) > LAST_CONTROL)) continue
    const kind = hiddenKindAt(bytes, i)
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

function hiddenKindAt (bytes: Buffer, at: number): HiddenKind | undefined {
  const codePoint = codePointAt(bytes, at)
  if (codePoint === BYTE_ORDER_MARK && at === 0) return undefined
  return hiddenKindOf(codePoint, dependsOnBefore(codePoint) && at > 0 ? codePointAt(bytes, startBefore(bytes, at)) : undefined)
}

/** Where the character before this one begins. */
function startBefore (bytes: Buffer, at: number): number {
  let start = at - 1
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start--
  return start
}

/** Of valid UTF-8. */
function codePointAt (bytes: Buffer, at: number): number {
  const lead = bytes[at] ?? 0
  if (lead < 0x80) return lead
  const two = (lead & 0x1f) << 6 | ((bytes[at + 1] ?? 0) & 0x3f)
  if (lead < 0xe0) return two
  const three = (two & 0x3ff) << 6 | ((bytes[at + 2] ?? 0) & 0x3f)
  return lead < 0xf0 ? three : (three & 0x7fff) << 6 | ((bytes[at + 3] ?? 0) & 0x3f)
}
