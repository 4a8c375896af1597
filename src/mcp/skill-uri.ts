/** What a `skill://` URI names: a skill by its folder name, and a path in it, empty for its folder. */
export interface SkillPlace {
  readonly name: string
  /** Relative to the skill's folder, decoded, `/` between segments. */
  readonly path: string
}

const SCHEME = 'skill://'

/** `skill://<name>/<path>`, each segment percent-encoded; without a path the URI of the skill's folder. */
export function skillUri (name: string, path: string): string {
  const place = path === '' ? name : `${name}/${path}`
  return SCHEME + place.split('/').map(encodeURIComponent).join('/')
}

export function mainFileUri (name: string): string {
  return skillUri(name, 'SKILL.md')
}

/**
 * Undefined for what is no such URI: another scheme, a query or fragment, bad percent-encoding, an empty segment, a slash
 * that was encoded, which no name holds. Whether there is such a skill and file is for the catalog to say.
 */
export function parseSkillUri (uri: string): SkillPlace | undefined {
  if (!uri.startsWith(SCHEME) || /[?#]/.test(uri)) return undefined
  const segments: string[] = []
  for (const encoded of uri.slice(SCHEME.length).split('/')) {
    const segment = decodeSegment(encoded)
    if (segment === undefined || segment === '' || segment.includes('/')) return undefined
    segments.push(segment)
  }
  const [name = '', ...path] = segments
  return { name, path: path.join('/') }
}

function decodeSegment (text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
