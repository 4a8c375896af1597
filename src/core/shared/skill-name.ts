/** C0 controls, DEL and C1 controls: not allowed in names. */
const CONTROL_CHARACTER = /\p{Cc}/u

/** The source documents' rule for names in a call: no `/`, `\` or `..`, and not empty. */
export function hasForbiddenSequence (name: string): boolean {
  return name === '' || name.includes('/') || name.includes('\\') || name.includes('..')
}

/** Whether a folder of this name may be a skill. `entriesIn` leaves out names that are not UTF-8. */
export function isSafeName (name: string): boolean {
  return !hasForbiddenSequence(name) && !name.startsWith('.') && !CONTROL_CHARACTER.test(name) && name.isWellFormed()
}
