import { Signal } from '../core/shared/signal.ts'
import { SourceError } from '../sources/source-error.ts'
import type { Candidate } from '../sources/source-keeper.ts'
import type { Policy } from './policy.ts'
import { verifyRoot } from './verify-folder.ts'

/**
 * Refuses a state of a source in which a skill is not signed as the policy asks: the whole previous state stays.
 * @throws SourceError `verification_failed`
 */
export async function approveCandidate ({ source, revision, skillsFolder, folders }: Candidate, policy: Policy): Promise<void> {
  if (folders.size === 0) return
  const listed = {
    isFixed: true,
    changed: new Signal<void>(),
    folders: new Map([...folders].map(([name, path]) => [name, { path, realPath: path }]))
  }
  for (const { name, isServed, problem } of await verifyRoot({ path: skillsFolder, name: source, listed }, policy)) {
    if (isServed) continue
    throw new SourceError('verification_failed', `${revision} is refused: the skill ${JSON.stringify(name)}: ${problem}`)
  }
}
