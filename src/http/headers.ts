/** On every answer, errors written by hand included: JSON that stays JSON needs no more. */
export const securityHeaders = {
  'x-content-type-options': 'nosniff'
} as const

/**
 * On the bytes of skills: other people's content on our origin, that a browser may show. It runs no scripts, submits no
 * forms and has no origin.
 */
export const contentHeaders = {
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; sandbox"
} as const
