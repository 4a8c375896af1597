/** An object of parsed JSON from outside: read its own properties only, so that `__proto__` is data. */
export type JsonObject = Readonly<Record<string, unknown>>

export function isJsonObject (value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The own property, or undefined; also for values that are not objects. */
export function own (value: unknown, key: string): unknown {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

/** The own property where it is text, otherwise an empty text. */
export function ownText (value: unknown, key: string): string {
  const text = own(value, key)
  return typeof text === 'string' ? text : ''
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/**
 * Whether JSON text nests arrays and objects deeper than `max` levels; `[]` is one level. To be called before
 * JSON.parse, which survives 200,000 levels: code that walks the value does not. Exact for JSON only.
 */
export function jsonDepthExceeds (text: string, max: number): boolean {
  if (text.length <= max) return false
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case QUOTE:
        i = endOfString(text, i)
        break
      case OPEN_BRACKET:
      case OPEN_BRACE:
        if (++depth > max) return true
        break
      case CLOSE_BRACKET:
      case CLOSE_BRACE:
        depth--
        break
    }
  }
  return false
}

/** Index of the quote that ends the string opened at `start`; the end of the text when none does. */
function endOfString (text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === QUOTE) return i
    if (unit === BACKSLASH) i++
  }
  return text.length
}
