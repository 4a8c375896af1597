/**
 * Verdicts on skills, for every API. A page asks `createJudge` for what `GET /catalog/:name` shows, with a chosen set
 * of targets or without: `{ findings, tokens, targets? }`. With the parts of a skill at hand, ask `verdictsOf`
 * and `estimateTokens`, which are pure.
 */
export { createJudge, type EntryVerdicts, type FindingSource, type Judging, subjectOf } from './entry.ts'
export { type TargetVerdict, type Verdicts, verdictsOf } from './judge.ts'
export type { Subject } from './subject.ts'
export { OUTCOMES, type Outcome, parseTargets, type Target, TARGET_NAMES, type TargetName, TARGETS } from './targets.ts'
export { estimateTokens, type TokenEstimate } from './tokens.ts'
