const PLAIN_WORD = /^[\w@%+=:,./-]+$/

/** A word of a POSIX shell. */
export function shellWord (text: string): string {
  return PLAIN_WORD.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
