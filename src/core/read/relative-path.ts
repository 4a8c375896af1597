/** Result of parsing a path, before the disk is accessed. */
type RelativePath =
  | { readonly kind: 'inside', readonly path: string }
  | { readonly kind: 'empty' }
  | { readonly kind: 'outside' }
  | { readonly kind: 'unusable' }

const ABSOLUTE = /^(?:[/\\]|[A-Za-z]:[/\\])/
/** `\` is an ordinary character on POSIX. A path must stay inside with and without it as a separator. */
const SEPARATORS = ['/', /[/\\]/] as const

/**
 * Parses a relative path by the rules of POSIX and of Windows together. `outside`: absolute (POSIX, drive letter, UNC)
 * or above the skill at any point, also with `\` as a separator. `unusable`: no file can have this name. `inside`: the
 * path with `.`, `..` and empty segments resolved, and only `/` as a separator. A trailing `/` stays, so that
 * `SKILL.md/` names no file.
 */
export function parseRelativePath (text: string): RelativePath {
  if (text === '') return { kind: 'empty' }
  if (ABSOLUTE.test(text) || SEPARATORS.some((separator) => climbsOut(text.split(separator)))) {
    return { kind: 'outside' }
  }
  // Node would replace a lone surrogate by U+FFFD, and open a file of that name.
  if (text.includes('\0') || !text.isWellFormed()) return { kind: 'unusable' }
  const segments: string[] = []
  for (const segment of text.split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  const folder = /(?:^|\/)\.{0,2}$/.test(text) ? '/' : ''
  return { kind: 'inside', path: segments.length === 0 ? '.' : segments.join('/') + folder }
}

function climbsOut (segments: readonly string[]): boolean {
  let depth = 0
  for (const segment of segments) {
    if (segment === '..') depth--
    else if (segment !== '' && segment !== '.') depth++
    if (depth < 0) return true
  }
  return false
}
