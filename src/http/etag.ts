/** @param digest `sha256:<hex>` @param variant names the representation when one content has several: `json` */
export function strongEtag (digest: string, variant?: string): string {
  const opaque = digest.slice(digest.indexOf(':') + 1)
  return variant === undefined ? `"${opaque}"` : `"${opaque}-${variant}"`
}

/** Whether `If-Match` or `If-None-Match` names one of these tags, or the weak form that compressed bytes have. */
export function matchesEtag (header: string, ...etags: readonly string[]): boolean {
  // No tag of ours holds a comma or a blank, and the quotes cannot be anywhere else in a well-formed list.
  return header.trim() === '*' || etags.some((etag) => header.includes(etag.replace('W/', '')))
}
