import fc from 'fast-check'

const SURROGATES = 0xd800
const AFTER_SURROGATES = 0xe000
const COUNT = AFTER_SURROGATES - SURROGATES

/**
 * Any code point but a surrogate. `binary` of fast-check builds a table of all of them, which takes each process a
 * second.
 */
export const codePoint = fc.integer({ min: 0, max: 0x10ffff - COUNT }).map(
  (index) => String.fromCodePoint(index < SURROGATES ? index : index + COUNT),
  (text) => {
    const [first, ...more] = typeof text === 'string' ? text : ''
    const value = first?.codePointAt(0)
    if (value === undefined || more.length > 0) throw new Error('not one code point')
    return value < SURROGATES ? value : value - COUNT
  }
)

/** The path of a URL. `webPath` of fast-check builds that table too. */
export const urlPath = fc.array(fc.oneof(
  fc.constantFrom(...'abyzABYZ0189-._~!$&\'()*+,;=:@', '/', '/', '%25', '%2F', '%2e'),
  codePoint.map((character) => encodeURIComponent(character))
), { maxLength: 40 }).map((parts) => `/${parts.join('')}`)
