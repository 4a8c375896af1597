/**
 * Verdicts on skills, for every API. A page asks `createValidator` for what `GET /catalog/:name` shows, with chosen
 * targets or without: `{ findings, tokens, targets? }`. With the parts of a skill at hand, ask `verdictsOf`
 * and `estimateTokens`, which are pure.
 */
export { createValidator, type EntryVerdicts, type FindingSource, type Validator, subjectOf } from './entry.ts'
export { type TargetVerdict, type Verdicts, verdictsOf } from './validate.ts'
export type { Subject } from './subject.ts'
export { OUTCOMES, type Outcome, parseTargets, type Target, TARGET_NAMES, type TargetName, TARGETS } from './targets.ts'
export { estimateTokens, type TokenEstimate } from './tokens.ts'
