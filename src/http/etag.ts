/**
 * The strong ETag of content with this digest.
 * @param digest `sha256:<hex>`
 * @param variant names the representation when one content has several, for example `json`
 */
export function strongEtag (digest: string, variant?: string): string {
  const opaque = digest.slice(digest.indexOf(':') + 1)
  return variant === undefined ? `"${opaque}"` : `"${opaque}-${variant}"`
}

/**
 * Whether `If-Match` or `If-None-Match` names one of these strong tags: a tag, a list or `*`. The comparison is weak
 * for both: the weak tags of this service are those of compressed forms of the same bytes.
 */
export function matchesEtag (header: string, ...etags: readonly string[]): boolean {
  // No tag of ours holds a comma or a blank, and the quotes cannot be anywhere else in a well-formed list.
  return header.trim() === '*' || etags.some((etag) => header.includes(etag.replace('W/', '')))
}
