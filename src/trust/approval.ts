import type { TrustPolicy } from '../core/content/trust/trust-policy.ts'
import { Signal } from '../core/ground/signal.ts'
import { SourceError } from '../sources/source-error.ts'
import type { Candidate } from '../sources/source-keeper.ts'
import { verifyRoot } from './verify-folder.ts'

/**
 * Refuses a state of a source in which a skill is not signed as the policy asks: the state before stays, as a whole.
 * @throws SourceError `verification_failed`
 */
export async function approveCandidate ({ source, revision, place, folders }: Candidate, policy: TrustPolicy): Promise<void> {
  if (folders.size === 0) return
  const listed = { isFixed: true, changed: new Signal<void>(), folders: new Map([...folders].map(([name, path]) => [name, { path, realPath: path }])) }
  for (const { name, isServed, problem } of await verifyRoot({ path: place, name: source, listed }, policy)) {
    if (!isServed) throw new SourceError('verification_failed', `${revision} is refused: the skill ${JSON.stringify(name)}: ${problem}`)
  }
}
