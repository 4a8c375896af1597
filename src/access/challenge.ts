import { HttpProblem } from '../http/problem.ts'
import { READ_SCOPE, type Refusal } from './policy.ts'

const DESCRIPTIONS = {
  invalid_token: 'The token is unknown, damaged or no longer valid',
  token_expired: 'The token has expired'
} as const satisfies Partial<Record<Refusal, string>>

/** The refusals of RFC 6750 §3. None depends on what was asked for. */
export class Challenges {
  readonly #parameters: string

  /** @param metadata address of the protected resource metadata; undefined without issuers */
  constructor (metadata: string | undefined) {
    this.#parameters = metadata === undefined ? 'realm="skillserve"' : `realm="skillserve", resource_metadata="${metadata}", scope="${READ_SCOPE}"`
  }

  refuse (refusal: Refusal): HttpProblem {
    switch (refusal) {
      case 'unauthenticated':
        // Without `error`: the caller has not tried (RFC 6750 §3.1).
        return new HttpProblem(refusal, undefined, { 'www-authenticate': `Bearer ${this.#parameters}` })
      case 'invalid_token':
      case 'token_expired':
        return new HttpProblem(refusal, undefined, { 'www-authenticate': `Bearer ${this.#parameters}, error="invalid_token", error_description="${DESCRIPTIONS[refusal]}"` })
      case 'wrong_audience':
        // The audience that the service expects is not told to callers.
        return this.refuse('invalid_token')
      case 'invalid_credentials':
        return new HttpProblem(refusal, undefined, { 'www-authenticate': `Bearer ${this.#parameters}, error="invalid_request"` })
      case 'issuer_unavailable':
        return new HttpProblem(refusal)
    }
  }

  lacksScope (scope: string): HttpProblem {
    return new HttpProblem('insufficient_scope', `This route needs the scope ${scope}; ask for a token with that scope`, {
      'www-authenticate': `Bearer ${this.#parameters.replace(`, scope="${READ_SCOPE}"`, '')}, error="insufficient_scope", scope="${scope}"`
    })
  }
}
