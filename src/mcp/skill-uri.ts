import { encodePath } from '../core/shared/paths.ts'
import { decodePercent } from '../core/shared/text.ts'

const SCHEME = 'skill://'

/** Formats `skill://<name>/<path>`, each segment percent-encoded; without a path, the URI of the skill's folder. */
export function skillUri (name: string, path: string): string {
  return SCHEME + encodePath(path === '' ? name : `${name}/${path}`)
}

export function mainFileUri (name: string): string {
  return skillUri(name, 'SKILL.md')
}

/**
 * Decodes a URI into the folder name of a skill and a path in it, empty for the folder itself. The catalog knows
 * whether they exist. Undefined for another scheme, a query or fragment, bad percent-encoding, an empty segment, and an
 * encoded slash, which no name contains.
 */
export function parseSkillUri (uri: string): { readonly name: string, readonly path: string } | undefined {
  if (!uri.startsWith(SCHEME) || /[?#]/.test(uri)) return undefined
  const segments: string[] = []
  for (const encoded of uri.slice(SCHEME.length).split('/')) {
    const segment = decodePercent(encoded)
    if (segment === undefined || segment === '' || segment.includes('/')) return undefined
    segments.push(segment)
  }
  const [name = '', ...path] = segments
  return { name, path: path.join('/') }
}
