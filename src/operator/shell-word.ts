const PLAIN_WORD = /^[\w@%+=:,./-]+$/

/** Quotes a text as one word of a POSIX shell, where it needs quotes. */
export function shellWord (text: string): string {
  return PLAIN_WORD.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
