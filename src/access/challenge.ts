import type { RefusalReason } from '../http/callers.ts'
import { HttpProblem } from '../http/problem.ts'
import { READ_SCOPE } from './policy.ts'

/** Why a request is refused. */
export type Refusal = 'unauthenticated' | 'invalid_credentials' | 'invalid_token' | 'token_expired' |
  'wrong_audience' | 'issuer_unavailable'

/** What metrics count a refusal as. */
export const REASONS = {
  unauthenticated: 'missing',
  invalid_credentials: 'invalid',
  invalid_token: 'invalid',
  token_expired: 'expired',
  wrong_audience: 'audience',
  issuer_unavailable: 'issuer'
} as const satisfies Readonly<Record<Refusal, RefusalReason>>

const INVALID = ', error="invalid_token", error_description='

/** What follows the realm in the challenge of each refusal (RFC 6750 §3). Without `error`, the caller has not tried. */
const ERRORS = {
  unauthenticated: '',
  invalid_token: `${INVALID}"The token is unknown, damaged or no longer valid"`,
  token_expired: `${INVALID}"The token has expired"`,
  invalid_credentials: ', error="invalid_request"'
} as const satisfies Partial<Record<Refusal, string>>

function realmOf (metadata: string | undefined): string {
  return `Bearer realm="skillserve"${metadata === undefined ? '' : `, resource_metadata="${metadata}"`}`
}

/**
 * The answer to a caller that is not admitted. It does not depend on what was asked for.
 * @param metadata address of the protected resource metadata; undefined without issuers
 */
export function refuse (refusal: Refusal, metadata: string | undefined): HttpProblem {
  if (refusal === 'issuer_unavailable') return new HttpProblem(refusal)
  // The audience that the service expects is not reported to callers.
  const code = refusal === 'wrong_audience' ? 'invalid_token' : refusal
  const scope = metadata === undefined ? '' : `, scope="${READ_SCOPE}"`
  return new HttpProblem(code, undefined, { 'www-authenticate': `${realmOf(metadata)}${scope}${ERRORS[code]}` })
}

export function lacksScope (scope: string, metadata: string | undefined): HttpProblem {
  const detail = `This route needs the scope ${scope}; ask for a token with that scope`
  const challenge = `${realmOf(metadata)}, error="insufficient_scope", scope="${scope}"`
  return new HttpProblem('insufficient_scope', detail, { 'www-authenticate': challenge })
}
