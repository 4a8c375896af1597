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
 * Whether `If-None-Match` names `etag`: one tag, a list or `*`, compared weakly (RFC 9110 §13.1.2). The tag is searched
 * with its quotes, which cannot be found anywhere else in a well-formed list: no tag of ours holds a comma or a blank.
 */
export function matchesEtag (ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch === etag || ifNoneMatch.trim() === '*' || ifNoneMatch.includes(etag.startsWith('W/') ? etag.slice(2) : etag)
}

/** Whether `If-Match` names one of the tags: compared strongly (RFC 9110 §13.1.1), so that neither a weak tag nor a date matches. */
export function matchesStrongly (ifMatch: string, ...tags: readonly string[]): boolean {
  return ifMatch.split(',').map((tag) => tag.trim()).some((tag) => tag === '*' || (!tag.startsWith('W/') && tags.includes(tag)))
}
