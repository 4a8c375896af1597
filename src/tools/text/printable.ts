/** Characters that end a line, move a cursor or reverse the reading order; and lone surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}]/gu

/** Nearly all names and paths: this test is many times faster than the classes above. */
const PLAIN = /^[ -~]*$/

/** Text from outside in one visible line: unprintable characters become `\uXXXX`. Other characters stay as they are. */
export function printable (text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
