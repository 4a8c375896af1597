/** Verdicts on skills, for every API. `verdictsOf` and `estimateTokens` are pure. */
export { createValidator, type EntryVerdicts, type Validator, subjectOf } from './entry.ts'
export { type TargetVerdict, validateFindings, type Verdicts, verdictsOf, verdictsOn } from './client-verdicts.ts'
export type { Subject } from './subject.ts'
export {
  OUTCOMES, type Outcome, outcomesOf, parseTargets, type Target, TARGET_GROUPS, TARGET_NAMES, type TargetName, TARGETS
} from './targets.ts'
export { estimateTokens, type TokenEstimate } from './tokens.ts'
