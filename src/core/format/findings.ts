import type { Finding, FindingSeverity } from '../skill.ts'

/** Longest piece of a skill's own text inside a sentence, in code points. */
const MAX_QUOTED_CODE_POINTS = 80

/** Most names that a sentence counts up before it says how many more there are. */
const MAX_LISTED_NAMES = 3

/** What can end a line, steer a terminal or hide in a sentence: controls, format characters, lone surrogates, separators. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** The makers of findings, one for each severity: code, sentence, instruction, and the frontmatter field if there is one. */
export const finding = {
  error: makerOf('error'),
  warning: makerOf('warning'),
  info: makerOf('info')
} as const

function makerOf (severity: FindingSeverity) {
  return (code: string, message: string, fix: string, field?: string): Finding =>
    field === undefined ? { code, severity, message, fix } : { code, severity, message, fix, field }
}

/** A skill's own text for use inside a sentence: in quotes, in one line, cut. Skills are untrusted. */
export function quote (text: string): string {
  // A code point is at most two units, so this slice holds enough of them without walking a long text.
  const points = Array.from(text.slice(0, 2 * MAX_QUOTED_CODE_POINTS + 2))
  const cut = points.length > MAX_QUOTED_CODE_POINTS
  return `'${points.slice(0, MAX_QUOTED_CODE_POINTS).join('').replaceAll(UNPRINTABLE, escapeCharacter)}${cut ? '…' : ''}'`
}

/** Names for use inside a sentence: `'a', 'b', 'c' and 4 more`. */
export function quoteList (names: readonly string[]): string {
  const shown = names.slice(0, MAX_LISTED_NAMES).map(quote).join(', ')
  return names.length > MAX_LISTED_NAMES ? `${shown} and ${names.length - MAX_LISTED_NAMES} more` : shown
}

function escapeCharacter (character: string): string {
  if (character === '\n') return '\\n'
  if (character === '\r') return '\\r'
  if (character === '\t') return '\\t'
  return `\\u{${character.codePointAt(0)?.toString(16)}}`
}
