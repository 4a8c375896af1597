/** C0 controls, DEL and C1 controls, which names must not contain. */
const CONTROL_CHARACTER = /\p{Cc}/u

/** Whether a name is forbidden in a call: empty, or with `/`, `\` or `..`. */
export function hasForbiddenSequence (name: string): boolean {
  return name === '' || name.includes('/') || name.includes('\\') || name.includes('..')
}

/** Whether a skill may have this name. Names that are not UTF-8 never get here: `listFolders` skips them. */
export function isSafeName (name: string): boolean {
  return !hasForbiddenSequence(name) && !name.startsWith('.') && !CONTROL_CHARACTER.test(name) && name.isWellFormed()
}
