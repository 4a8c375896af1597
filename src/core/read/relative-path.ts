/** What a caller's text says about a place in a skill, before any disk is asked. */
type RelativePath =
  | { readonly kind: 'inside', readonly path: string }
  | { readonly kind: 'empty' }
  | { readonly kind: 'outside' }
  | { readonly kind: 'unusable' }

const ABSOLUTE = /^(?:[/\\]|[A-Za-z]:[/\\])/
/** `\` is a letter on POSIX: a path must stay inside in both readings. */
const SEPARATORS = ['/', /[/\\]/] as const

/**
 * Reads a relative path as a person on any platform could have meant it. `outside` is whatever is absolute
 * (POSIX, drive letter, UNC) or climbs above the skill at any point, with `\` as a separator too. `unusable` is
 * what no file can be called. Otherwise the path with `.`, `..` and empty segments resolved: on the disk only `/`
 * separates. A trailing `/` stays, so that `SKILL.md/` names no file.
 */
export function parseRelativePath (text: string): RelativePath {
  if (text === '') return { kind: 'empty' }
  if (ABSOLUTE.test(text) || SEPARATORS.some((separator) => climbsOut(text.split(separator)))) {
    return { kind: 'outside' }
  }
  // A lone surrogate would be written as U+FFFD and open a file of that name.
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
