/** Prefixes of the service's secrets: tokens, and links to discovery documents. */
export const SECRET_PREFIXES = { token: 'sks_', link: 'skl_' } as const

/**
 * Matches a secret or most of one, each character plain or percent-encoded any number of times. A match has 16
 * characters behind the prefix: in a shorter rest 95 bits are unknown, and names such as `tasks_report` stay readable.
 */
const SECRET = new RegExp([
  '(?:s|%(?:25)*[57]3)', '(?:k|%(?:25)*[46]b)', '(?:[sl]|%(?:25)*(?:[57]3|[46]c))', '(?:_|%(?:25)*5f)',
  '(?:[\\da-z]|%(?:25)*[3-7][\\da-f]){16,}'
].join(''), 'gi')

/** A token of an issuer (RFC 7519), recognized by its beginning: JSON in base64url. */
const JWT = /\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?/g

/** Replacement for a secret in a text. */
export const MASK = '-'

/** Masks secrets in a text from a caller, for logs and answers. */
export function maskSecrets (text: string): string {
  return text.replace(SECRET, MASK).replace(JWT, MASK)
}
