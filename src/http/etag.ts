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
 * with its quotes. They cannot be anywhere else in a well-formed list: no tag of ours holds a comma or a blank.
 */
export function matchesEtag (ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch === etag || ifNoneMatch.trim() === '*' || ifNoneMatch.includes(etag.startsWith('W/') ? etag.slice(2) : etag)
}

/** Content codings of answers (RFC 9110 §8.4.1). A replica on an older Node may lack one. */
const ENCODINGS = ['br', 'zstd', 'gzip'] as const
export type Encoding = (typeof ENCODINGS)[number]

const OF_ENCODED_FORM = new RegExp(`-(?:${ENCODINGS.join('|')})"$`)

/** The strong ETag of content in an encoded form, which is a representation of its own (RFC 9110 §8.8.3.3). */
export function encodedEtag (etag: string, encoding: Encoding): string {
  return `${etag.slice(0, -1)}-${encoding}"`
}

/** The strong ETag of the same content without encoding. */
export function identityEtag (etag: string): string {
  return etag.replace(OF_ENCODED_FORM, '"')
}

/** The ETag that `If-None-Match` names of content in any form, the form of `etag` first. A client keeps the form that it has. */
export function matchingEtag (ifNoneMatch: string, etag: string): string | undefined {
  if (matchesEtag(ifNoneMatch, etag)) return etag
  const identity = identityEtag(etag)
  return [identity, ...ENCODINGS.map((encoding) => encodedEtag(identity, encoding))].find((form) => matchesEtag(ifNoneMatch, form))
}

/** Whether `If-Match` names one of the tags: compared strongly (RFC 9110 §13.1.1), so that neither a weak tag nor a date matches. Any form of the content does. */
export function matchesStrongly (ifMatch: string, ...tags: readonly string[]): boolean {
  return ifMatch.split(',').map((tag) => identityEtag(tag.trim())).some((tag) => tag === '*' || (!tag.startsWith('W/') && tags.includes(tag)))
}
