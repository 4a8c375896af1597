import type { RefusalReason } from '../http/callers.ts'
import { HttpProblem } from '../http/problem.ts'
import { READ_SCOPE } from './policy.ts'

const INVALID = ', error="invalid_token", error_description='
const UNUSABLE = `${INVALID}"The token is unknown, damaged or no longer valid"`

/**
 * Why requests are refused: the code of the problem, what metrics count, and what follows the realm in the challenge
 * (RFC 6750 §3). Without `error`, the caller has not tried.
 */
export const REFUSALS = {
  unauthenticated: { code: 'unauthenticated', reason: 'missing', error: '' },
  invalid_credentials: { code: 'invalid_credentials', reason: 'invalid', error: ', error="invalid_request"' },
  invalid_token: { code: 'invalid_token', reason: 'invalid', error: UNUSABLE },
  token_expired: { code: 'token_expired', reason: 'expired', error: `${INVALID}"The token has expired"` },
  // The audience that the service expects is not reported to callers.
  wrong_audience: { code: 'invalid_token', reason: 'audience', error: UNUSABLE },
  issuer_unavailable: { code: 'issuer_unavailable', reason: 'issuer', error: undefined }
} as const satisfies Readonly<Record<string, { readonly reason: RefusalReason, readonly [key: string]: unknown }>>

export type Refusal = keyof typeof REFUSALS

function realmOf (metadata: string | undefined): string {
  return `Bearer realm="skillserve"${metadata === undefined ? '' : `, resource_metadata="${metadata}"`}`
}

/**
 * The answer to a caller that is not admitted. It does not depend on what was asked for.
 * @param metadata address of the protected resource metadata; undefined without issuers
 */
export function refuse (refusal: Refusal, metadata: string | undefined): HttpProblem {
  const { code, error } = REFUSALS[refusal]
  if (error === undefined) return new HttpProblem(code)
  const scope = metadata === undefined ? '' : `, scope="${READ_SCOPE}"`
  return new HttpProblem(code, undefined, { 'www-authenticate': `${realmOf(metadata)}${scope}${error}` })
}

export function lacksScope (scope: string, metadata: string | undefined): HttpProblem {
  const detail = `This route needs the scope ${scope}; ask for a token with that scope`
  const challenge = `${realmOf(metadata)}, error="insufficient_scope", scope="${scope}"`
  return new HttpProblem('insufficient_scope', detail, { 'www-authenticate': challenge })
}
