import type { SkillErrorKind } from '../../core/shared/errors.ts'

/** What came of a read, or of what the service did. */
export type Outcome = 'success' | 'not_modified' | 'denied' | 'not_found' | 'failure' | 'error'

/** By kind of error, as for the statuses of REST. */
const OUTCOMES = {
  invalid: 'failure',
  forbidden: 'denied',
  missing: 'not_found',
  outdated: 'failure',
  too_large: 'failure',
  unprocessable: 'failure',
  broken: 'error',
  unavailable: 'error'
} as const satisfies Record<SkillErrorKind, Outcome>

/**
 * The outcome of a call or an operation.
 * @param kind undefined for what is wrong with the call itself
 */
export function outcomeOfError (kind: SkillErrorKind | undefined): Outcome {
  return kind === undefined ? 'failure' : OUTCOMES[kind]
}

/** The outcome of a response, by its status. */
export function outcomeOf (status: number): Outcome {
  if (status < 300) return 'success'
  if (status < 400) return 'not_modified'
  if (status === 401 || status === 403 || status === 429) return 'denied'
  if (status === 404) return 'not_found'
  return status < 500 ? 'failure' : 'error'
}
