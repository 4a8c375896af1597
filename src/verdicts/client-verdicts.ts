import { basename } from 'node:path/posix'
import { quoteList } from '../core/format/findings.ts'
import { quote } from '../core/shared/text.ts'
import { fieldPositions } from '../core/format/positions.ts'
import type { Finding, FindingSeverity } from '../core/shared/skill.ts'
import { CONDITIONS } from './conditions.ts'
import { finding, type FindingCode } from './findings.ts'
import { nestedSkills } from './rules/files.ts'
import { targetFindings } from './rules/rules.ts'
import { frontmatterOf, type Subject } from './subject.ts'
import { OUTCOMES, type Outcome, outcomesOf, TARGET_NAMES, TARGETS, type TargetName } from './targets.ts'

/** Outcome of a skill for one target. */
export interface TargetVerdict {
  readonly target: TargetName
  readonly verdict: Outcome
  /** Codes of the findings that lead to the outcome; absent for `ok`. */
  readonly because?: readonly string[]
  /** The day on which the target's rules were read. */
  readonly read: string
}

export interface Verdicts {
  /** Verdicts of the chosen targets, in the order of TARGETS. */
  readonly targets: readonly TargetVerdict[]
  /** Findings, one for each mistake, in the order in which an author should fix them. */
  readonly findings: readonly Finding[]
}

/** A finding, and its outcome for each target that has a rule for it. */
export interface ValidatedFinding {
  readonly found: Finding
  readonly outcomes: Map<TargetName, Outcome>
  /** Whether targets decide on its severity. A finding without outcomes concerns every reader, and keeps its own. */
  readonly isOfTargets: boolean
}

/** Validates one state of a skill for all targets: one finding for each mistake. Pure, never throws. */
export function validateFindings (subject: Subject): readonly ValidatedFinding[] {
  const mainFile = basename(subject.skill.metadata.path)
  const source = frontmatterOf(subject)
  const positions = source === undefined ? undefined : fieldPositions(source)
  const all = new Set([...subject.skill.findings, ...subject.otherFindings, ...targetFindings(subject)]
    .map((found) => validate(withPosition(withNestedSkills(found, subject), mainFile, positions), subject)))
  for (const echo of all) {
    const cause = causeOf(echo, all)
    if (cause === undefined) continue
    for (const [target, outcome] of echo.outcomes) addOutcome(cause.outcomes, target, outcome)
    all.delete(echo)
  }
  return [...all]
}

/**
 * Returns what each client does with a skill, and its findings with severities.
 * @param targets the clients that decide on severities: `not_loaded` and `refused` are errors, other outcomes warnings,
 * and what none of them minds is an info. Default: the format.
 */
export function verdictsOn (
  validated: readonly ValidatedFinding[], targets: readonly TargetName[] = ['spec']
): Verdicts {
  return {
    targets: targets.map((target) => verdictOf(target, validated)),
    findings: validated.map(({ found, outcomes, isOfTargets }) => ({
      ...found,
      ...isOfTargets && { severity: severityFor(targets, outcomes) },
      ...outcomes.size > 0 && { targets: TARGET_NAMES.filter((name) => outcomes.has(name)) }
    }))
  }
}

/** Validates a skill for some targets. */
export function verdictsOf (subject: Subject, targets?: readonly TargetName[]): Verdicts {
  return verdictsOn(validateFindings(subject), targets)
}

function validate (found: Finding, subject: Subject): ValidatedFinding {
  const possible = outcomesOf(found.code)
  const outcomes: ValidatedFinding['outcomes'] = new Map()
  for (const { target, outcome, when } of possible) {
    if (when === undefined || CONDITIONS[when](subject, found)) addOutcome(outcomes, target, outcome)
  }
  return { found, outcomes, isOfTargets: possible.length > 0 }
}

/** What two findings may have in common. */
const COMMON = {
  nothing: () => true,
  line: (cause, echo) => cause.found.line === echo.found.line,
  field: (cause, echo) => cause.found.field === echo.found.field,
  outcomes: (cause, echo) => [...echo.outcomes].every(([target, outcome]) => cause.outcomes.get(target) === outcome),
  // About a main file that is no file of the skill: the echo says that the manifest does not list it.
  file: ({ found: { file = '' } }, echo) => echo.found.message.endsWith(`: ${quote(file)}`)
} as const satisfies Readonly<Record<string, (cause: ValidatedFinding, echo: ValidatedFinding) => boolean>>

type Cause = readonly [common: keyof typeof COMMON, codes: RegExp]

/** About text that is a list, a mapping or a number. */
const WRONG_SHAPE = /_not_(?:text|mapping)$|^allowed_tools_list$/
const UNLISTED: readonly Cause[] =
  [['line', /^(?:yaml_|frontmatter_flow_style$)/], ['nothing', /^yaml_repaired$/], ['outcomes', /^/]]
const NO_MAIN_FILE: readonly Cause[] = [['file', /^main_file_(?:not_a_file|permission_denied|unreadable)$/]]

/** Findings that may repeat another one, and which: the first that fits is the cause. */
const CAUSES: Readonly<Record<string, readonly Cause[]>> = {
  control_characters: [['line', /^yaml_/]],
  yaml_not_portable: [['line', /^yaml_(?!not_portable$)/], ['line', WRONG_SHAPE]],
  frontmatter_flow_style: [['field', WRONG_SHAPE]],
  mcp_refused: UNLISTED,
  discovery_frontmatter_differs: UNLISTED,
  link_outside: NO_MAIN_FILE,
  link_to_folder: NO_MAIN_FILE,
  file_special: NO_MAIN_FILE,
  file_unreadable: NO_MAIN_FILE
} satisfies Partial<Record<FindingCode, readonly Cause[]>>

/** Returns the finding on the same mistake, which takes the outcomes of its echo. */
function causeOf (echo: ValidatedFinding, all: ReadonlySet<ValidatedFinding>): ValidatedFinding | undefined {
  for (const [common, codes] of CAUSES[echo.found.code] ?? []) {
    for (const cause of all) {
      if (cause !== echo && codes.test(cause.found.code) && COMMON[common](cause, echo)) return cause
    }
  }
  return undefined
}

function addOutcome (outcomes: ValidatedFinding['outcomes'], target: TargetName, outcome: Outcome): void {
  outcomes.set(target, worstOf([outcome, outcomes.get(target)]))
}

function worstOf (outcomes: ReadonlyArray<Outcome | undefined>): Outcome {
  return OUTCOMES.findLast((outcome) => outcomes.includes(outcome)) ?? 'ok'
}

function verdictOf (target: TargetName, validated: readonly ValidatedFinding[]): TargetVerdict {
  const minded = validated.filter(({ outcomes }) => outcomes.has(target))
  const verdict = worstOf(minded.map(({ outcomes }) => outcomes.get(target)))
  const because = [...new Set(minded.map(({ found }) => found.code))]
  return { target, verdict, ...because.length > 0 && { because }, read: TARGETS[target].read }
}

function severityFor (targets: readonly TargetName[], outcomes: ReadonlyMap<TargetName, Outcome>): FindingSeverity {
  const worst = worstOf(targets.map((target) => outcomes.get(target)))
  if (worst === 'ok') return 'info'
  return worst === 'not_loaded' || worst === 'refused' ? 'error' : 'warning'
}

/** Adds a line where a rule only knows the field or the file. */
function withPosition (found: Finding, mainFile: string, positions: ReturnType<typeof fieldPositions> | undefined) {
  const { file = mainFile, field, line } = found
  if (line !== undefined) return { ...found, file }
  if (field === undefined || positions === undefined) return found
  return { ...found, file, ...positions.get(field) ?? { line: 1, column: 1 } }
}

/** Names the skills below a folder without SKILL.md in its finding. */
function withNestedSkills (found: Finding, subject: Subject): Finding {
  if (found.code !== 'main_file_missing') return found
  const nested = nestedSkills(subject)
  if (nested.length === 0) return found
  return {
    ...found,
    ...finding('main_file_missing', `SKILL.md is missing, but there are skills below: ${quoteList(nested)}`,
      'Serve this folder itself as a folder of skills, choose --layout tree, or move ' +
        `${nested.length === 1 ? 'that skill' : 'those skills'} up`)
  }
}
