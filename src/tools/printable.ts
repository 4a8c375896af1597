/** What ends a line, moves a cursor or turns the reading order round; and surrogates that stand alone. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}]/gu

/** Nearly all names and paths: told many times faster than by the classes above. */
const PLAIN = /^[ -~]*$/

/** Text from outside in one visible line: what is not printable becomes `\uXXXX`. Other characters stay as they are. */
export function printable (text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
