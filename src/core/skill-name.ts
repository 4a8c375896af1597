/** C0 controls, DEL, C1 controls and the line separators: nothing that may stand in a name or start a log line. */
// eslint-disable-next-line no-control-regex
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/

/** The seeds' rule for names in a call: no `/`, `\` or `..`, and not empty (K16, K18). */
export function hasForbiddenSequence (name: string): boolean {
  return name === '' || name.includes('/') || name.includes('\\') || name.includes('..')
}

/** Whether a folder of this name may be a skill (K4). A name that is not UTF-8 shows as U+FFFD: see `discover.ts`. */
export function isSafeName (name: string): boolean {
  return !hasForbiddenSequence(name) && !name.startsWith('.') && !CONTROL_CHARACTER.test(name) && name.isWellFormed()
}
