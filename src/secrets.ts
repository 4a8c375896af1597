/** How the secrets of the service begin: tokens, and links to discovery documents. */
export const SECRET_PREFIXES = { token: 'sks_', link: 'skl_' } as const

/**
 * A secret, or most of one, each character plain or percent-encoded any number of times. Of a secret with fewer than 16
 * characters behind its prefix 95 bits are unknown, and names such as `tasks_report` stay readable.
 */
const SECRET = new RegExp([
  '(?:s|%(?:25)*[57]3)', '(?:k|%(?:25)*[46]b)', '(?:[sl]|%(?:25)*(?:[57]3|[46]c))', '(?:_|%(?:25)*5f)',
  '(?:[\\da-z]|%(?:25)*[3-7][\\da-f]){16,}'
].join(''), 'gi')

/** The token of an issuer (RFC 7519): JSON in base64url begins so. */
const JWT = /\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?/g

/** What stands in a text for a secret. */
export const MASK = '-'

/** A text of a caller's without secrets, for logs and answers. */
export function maskSecrets (text: string): string {
  return text.replace(SECRET, MASK).replace(JWT, MASK)
}
