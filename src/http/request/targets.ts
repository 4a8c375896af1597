import { parseTargets, TARGET_WORDS, type TargetName } from '../../verdicts/targets.ts'
import { quote } from '../../core/shared/text.ts'
import { HttpProblem } from '../problem.ts'

/**
 * The targets that a query names; undefined without a choice.
 * @throws HttpProblem `bad_query` for a word that names none
 */
export function readTargets (text: string | undefined): readonly TargetName[] | undefined {
  if (text === undefined) return undefined
  const targets = parseTargets(text)
  if (!('unknown' in targets)) return targets
  throw new HttpProblem(
    'bad_query',
    `Query parameter 'target' has ${quote(targets.unknown)}, allowed: ${TARGET_WORDS.join(', ')}`
  )
}
