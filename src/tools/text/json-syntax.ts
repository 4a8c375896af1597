/** The first syntax error of a text, in words for the model that wrote it: `parseArguments` sends them back. */
interface JsonSyntaxError {
  /** Offset in UTF-16 code units, from 0. */
  readonly position: number
  readonly problem: string
}

const WHITESPACE = /[ \t\n\r]*/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const LITERAL = /true|false|null/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y

/**
 * The first error of a text that JSON.parse refuses; undefined when it is JSON. V8's messages differ between Node
 * releases, and many name no position. Recursive: bound the depth of the text first.
 */
export function findJsonSyntaxError (text: string): JsonSyntaxError | undefined {
  try {
    const end = skipWhitespace(text, skipValue(text, 0))
    return end === text.length ? undefined : { position: end, problem: 'unexpected text after the JSON value' }
  } catch (error) {
    if (error instanceof Stop) return { position: error.position, problem: error.message }
    throw error
  }
}

class Stop extends Error {
  readonly position: number

  constructor (text: string, position: number, expected: string) {
    super(position < text.length ? expected : `the text ends too early, ${expected}`)
    this.position = position
  }
}

/** Each `skip…` takes the offset at which a thing begins and gives the offset behind it. */
function skipValue (text: string, from: number): number {
  const start = skipWhitespace(text, from)
  const first = text[start]
  if (first === '{') return skipObject(text, start)
  if (first === '[') return skipArray(text, start)
  if (first === '"') return skipString(text, start)
  const end = skipPattern(NUMBER, text, start) ?? skipPattern(LITERAL, text, start)
  if (end === undefined) throw new Stop(text, start, 'expected a JSON value')
  return end
}

function skipObject (text: string, start: number): number {
  let position = skipWhitespace(text, start + 1)
  if (text[position] === '}') return position + 1
  for (;;) {
    if (text[position] !== '"') throw new Stop(text, position, 'expected a property name in double quotes')
    position = skipWhitespace(text, skipString(text, position))
    if (text[position] !== ':') throw new Stop(text, position, "expected ':' after the property name")
    position = skipWhitespace(text, skipValue(text, position + 1))
    if (text[position] === '}') return position + 1
    if (text[position] !== ',') throw new Stop(text, position, "expected ',' or '}'")
    position = skipWhitespace(text, position + 1)
  }
}

function skipArray (text: string, start: number): number {
  let position = skipWhitespace(text, start + 1)
  if (text[position] === ']') return position + 1
  for (;;) {
    position = skipWhitespace(text, skipValue(text, position))
    if (text[position] === ']') return position + 1
    if (text[position] !== ',') throw new Stop(text, position, "expected ',' or ']'")
    position++
  }
}

function skipString (text: string, start: number): number {
  let position = start + 1
  while (position < text.length) {
    const unit = text.charCodeAt(position)
    if (unit === 0x22) return position + 1
    if (unit < 0x20) throw new Stop(text, position, 'expected control characters in a string to be escaped')
    if (unit === 0x5c) {
      const end = skipPattern(ESCAPE, text, position)
      if (end === undefined) throw new Stop(text, position, 'expected a valid escape after the backslash')
      position = end
    } else {
      position++
    }
  }
  throw new Stop(text, position, 'expected the closing quote of a string')
}

function skipWhitespace (text: string, start: number): number {
  return skipPattern(WHITESPACE, text, start) ?? start
}

function skipPattern (pattern: RegExp, text: string, start: number): number | undefined {
  pattern.lastIndex = start
  return pattern.test(text) ? pattern.lastIndex : undefined
}
