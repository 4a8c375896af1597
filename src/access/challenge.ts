import { HttpProblem } from '../http/problem.ts'
import { READ_SCOPE, type Refusal } from './policy.ts'

const DESCRIPTIONS = {
  invalid_token: 'The token is unknown, damaged or no longer valid',
  token_expired: 'The token has expired'
} as const satisfies Partial<Record<Refusal, string>>

/** The refusals of RFC 6750 §3. None depends on what was asked for. */
export class Challenges {
  readonly #realm: string

  /** @param metadata address of the protected resource metadata; undefined without issuers */
  constructor (metadata: string | undefined) {
    this.#realm = `Bearer realm="skillserve"${metadata === undefined ? '' : `, resource_metadata="${metadata}"`}`
  }

  refuse (refusal: Refusal): HttpProblem {
    const scope = this.#realm.includes('resource_metadata') ? `, scope="${READ_SCOPE}"` : ''
    const challenge = (error: string) => ({ 'www-authenticate': `${this.#realm}${scope}${error}` })
    switch (refusal) {
      case 'unauthenticated':
        // Without `error`: the caller has not tried (RFC 6750 §3.1).
        return new HttpProblem(refusal, undefined, challenge(''))
      case 'invalid_token':
      case 'token_expired': {
        const error = `, error="invalid_token", error_description="${DESCRIPTIONS[refusal]}"`
        return new HttpProblem(refusal, undefined, challenge(error))
      }
      case 'wrong_audience':
        // Callers do not learn which audience the service expects.
        return this.refuse('invalid_token')
      case 'invalid_credentials':
        return new HttpProblem(refusal, undefined, challenge(', error="invalid_request"'))
      case 'issuer_unavailable':
        return new HttpProblem(refusal)
    }
  }

  lacksScope (scope: string): HttpProblem {
    const detail = `This route needs the scope ${scope}; ask for a token with that scope`
    const challenge = `${this.#realm}, error="insufficient_scope", scope="${scope}"`
    return new HttpProblem('insufficient_scope', detail, { 'www-authenticate': challenge })
  }
}
