/** Returns the list before if the new one has the same items. */
export function keepIfEqual<T> (before: readonly T[] | undefined, now: readonly T[]): readonly T[] {
  return before?.length === now.length && now.every((item, index) => item === before[index]) ? before : now
}

/** Makes names distinct: `skills`, `skills-2`. A numbered name never equals another one or one of `others`. */
export function distinctNames (names: readonly string[], others: readonly string[] = []): readonly string[] {
  const taken = new Set([...names, ...others])
  return names.map((name, index) => {
    if (names.indexOf(name) === index) return name
    let number = 2
    while (taken.has(`${name}-${number}`)) number++
    taken.add(`${name}-${number}`)
    return `${name}-${number}`
  })
}

/** Returns undefined where a percent sign encodes nothing. */
export function decodePercent (text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/**
 * Compares texts by Unicode code point. JavaScript compares UTF-16 code units, where surrogates (U+D800–DFFF) sort
 * below U+E000–FFFF.
 */
export function compareCodePoints (a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x !== y) return surrogatesLast(x) - surrogatesLast(y)
  }
  return a.length - b.length
}

function surrogatesLast (unit: number): number {
  if (unit < 0xd800) return unit
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800
}

/** Writes a text in one line: each run of white space becomes one blank. */
export function foldWhitespace (text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}

/** Takes linear time, however many slashes there are. */
export function withoutEndSlashes (text: string): string {
  return text.replace(/(?<!\/)\/+$/, '')
}

/** Formats an integer with separators: `1,048,576`. */
export function grouped (number: number): string {
  return String(number).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
}

/** `1 skill`, `2 skills`, `1,000 skills`. */
export function counted (number: number, noun: string, plural = `${noun}s`): string {
  return `${grouped(number)} ${number === 1 ? noun : plural}`
}

/** Counts Unicode code points, as the format's limits do. */
export function countCodePoints (text: string): number {
  return [...text].length
}

/** Characters that end a line, move a cursor or reverse the reading order; and lone surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}]/gu

/** Writes text from outside in one visible line: unprintable characters become `\uXXXX`. */
export function printable (text: string): string {
  const escape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  return text.replace(UNPRINTABLE, escape)
}

/** Longest quoted text in a message, in code points. */
const MAX_QUOTED_CODE_POINTS = 80

/** Unprintable or invisible characters: controls, format characters, lone surrogates, separators. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Quotes text from outside for use in a sentence: in one line, with visible characters, cut. */
export function quote (text: string): string {
  // A code point has at most two units, so this slice has enough of them.
  const points = Array.from(text.slice(0, 2 * MAX_QUOTED_CODE_POINTS + 2))
  const escape = (character: string): string => ESCAPES[character] ?? `\\u{${character.codePointAt(0)?.toString(16)}}`
  const shown = points.slice(0, MAX_QUOTED_CODE_POINTS).join('').replaceAll(UNSEEN, escape)
  return `'${shown}${points.length > MAX_QUOTED_CODE_POINTS ? '…' : ''}'`
}
