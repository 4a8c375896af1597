import { printable } from '../../core/ground/text.ts'
import { parseTargets, TARGET_NAMES, type TargetName } from '../../verdicts/targets.ts'
import { HttpProblem } from '../problem.ts'

/** Of a word from outside that a sentence quotes, in characters. */
const MAX_QUOTED_CHARACTERS = 64

/**
 * The targets that a query names; undefined without a choice.
 * @throws HttpProblem `bad_query` for a word that names none
 */
export function readTargets (text: string | undefined): readonly TargetName[] | undefined {
  if (text === undefined) return undefined
  const targets = parseTargets(text)
  if (!('unknown' in targets)) return targets
  throw new HttpProblem('bad_query', `Query parameter 'target' has '${printable(targets.unknown.slice(0, MAX_QUOTED_CHARACTERS))}', allowed: ${TARGET_NAMES.join(', ')}, all`)
}
