import { basename } from 'node:path/posix'
import { quoteList } from '../core/format/findings.ts'
import { quote } from '../core/shared/text.ts'
import { fieldPositions } from '../core/format/positions.ts'
import type { Finding, FindingSeverity } from '../core/shared/skill.ts'
import { CONDITIONS } from './conditions.ts'
import { finding, type FindingCode } from './findings.ts'
import { nestedSkills, targetFindings } from './rules/rules.ts'
import { frontmatterOf, type Subject } from './subject.ts'
import { OUTCOMES, type Outcome, outcomesOf, TARGET_NAMES, TARGETS, type TargetName } from './targets.ts'

/** What one target does with a skill. */
export interface TargetVerdict {
  readonly target: TargetName
  readonly verdict: Outcome
  /** Codes of the findings that it rests on; absent when it is `ok`. */
  readonly because?: readonly string[]
  /** The day on which the target's rules were read. */
  readonly read: string
}

export interface Verdicts {
  /** In the order of TARGETS, one for each target that was chosen. */
  readonly targets: readonly TargetVerdict[]
  /** One for each mistake, in the order in which an author should fix them. */
  readonly findings: readonly Finding[]
}

/** The target that counts when none is chosen. */
const DEFAULT_TARGETS: readonly TargetName[] = ['spec']

/** Why this service does not list a skill, where the form of its frontmatter is the reason. */
const ABOUT_FORM: ReadonlySet<string> = new Set<FindingCode>(['mcp_refused', 'discovery_frontmatter_differs'])

/** What asks for text instead of a list, a mapping or a number. */
const ABOUT_SHAPE: ReadonlySet<string> = new Set<FindingCode>([
  'name_not_text', 'description_not_text', 'license_not_text', 'compatibility_not_text', 'metadata_not_mapping',
  'metadata_not_text', 'allowed_tools_not_text', 'allowed_tools_list'
])

/** Why a main file is not a file of the skill. That it is left out of the manifest is the same mistake. */
const MAIN_FILE_LEFT_OUT: ReadonlySet<string> =
  new Set<FindingCode>(['main_file_not_a_file', 'main_file_permission_denied', 'main_file_unreadable'])
const LEFT_OUT: ReadonlySet<string> =
  new Set<FindingCode>(['link_outside', 'link_to_folder', 'file_special', 'file_unreadable'])

/** A finding, and what it comes to for each target that minds it. */
export interface ValidatedFinding {
  readonly found: Finding
  readonly outcomes: Map<TargetName, Outcome>
  /** Whether clients decide on its severity. One without outcomes concerns every reader, and keeps its own. */
  readonly isOfTargets: boolean
}

/** Finds all that is to be said of one state of a skill, for all targets: one for each mistake. Pure, never throws. */
export function validateFindings (subject: Subject): readonly ValidatedFinding[] {
  const all = new Set([...subject.skill.findings, ...subject.otherFindings, ...targetFindings(subject)]
    .map((found) => validate(withPosition(withNestedSkills(found, subject), subject), subject)))
  for (const echo of all) {
    const cause = causeOf(echo, [...all].filter((each) => each !== echo))
    if (cause === undefined) continue
    for (const [target, outcome] of echo.outcomes) addOutcome(cause.outcomes, target, outcome)
    all.delete(echo)
  }
  return [...all]
}

/**
 * What each client does with a skill, for every API.
 * @param targets the clients that decide on severities: `not_loaded` and `refused` are errors, other outcomes warnings,
 * and what none of them minds is an info. Default: the format.
 */
export function verdictsOn (validated: readonly ValidatedFinding[], targets = DEFAULT_TARGETS): Verdicts {
  return {
    targets: targets.map((target) => verdictOf(target, validated)),
    findings: validated.map(({ found, outcomes, isOfTargets }) => ({
      ...found,
      ...isOfTargets && { severity: severityFor(targets, outcomes) },
      ...outcomes.size > 0 && { targets: TARGET_NAMES.filter((name) => outcomes.has(name)) }
    }))
  }
}

/** Both at once. */
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

/** The finding on the same mistake, which takes the outcomes of its echo. */
function causeOf (
  { found: { code, line, field }, found, outcomes }: ValidatedFinding, others: readonly ValidatedFinding[]
): ValidatedFinding | undefined {
  const atLine = (isCause: (code: string) => boolean) =>
    others.find(({ found: other }) => other.line === line && isCause(other.code))
  const isYaml = (other: string) => other.startsWith('yaml_')
  // YAML refuses them, so that they are named there.
  if (code === 'control_characters') return atLine(isYaml)
  if (code === 'yaml_not_portable') {
    return atLine((other) => isYaml(other) && other !== code) ?? atLine((other) => ABOUT_SHAPE.has(other))
  }
  if (code === 'frontmatter_flow_style') {
    return others.find(({ found: other }) => other.field === field && ABOUT_SHAPE.has(other.code))
  }
  if (LEFT_OUT.has(code)) {
    return others.find(({ found: other }) => MAIN_FILE_LEFT_OUT.has(other.code) && isAbout(found, other.file))
  }
  if (!ABOUT_FORM.has(code)) return undefined
  return atLine((other) => isYaml(other) || other === 'frontmatter_flow_style') ??
    others.find(({ found: other }) => other.code === 'yaml_repaired') ??
    others.find((other) => [...outcomes].every(([target, outcome]) => other.outcomes.get(target) === outcome))
}

function addOutcome (outcomes: ValidatedFinding['outcomes'], target: TargetName, outcome: Outcome): void {
  outcomes.set(target, worstOf([outcome, outcomes.get(target)]))
}

function worstOf (outcomes: ReadonlyArray<Outcome | undefined>): Outcome {
  return OUTCOMES.findLast((outcome) => outcomes.includes(outcome)) ?? 'ok'
}

/** Whether a finding names this file alone: names stand at the end of its message. */
function isAbout ({ message }: Finding, file: string | undefined): boolean {
  return file !== undefined && message.endsWith(`: ${quote(file)}`)
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

/** Clients of other APIs know which field or file they mind, and no line. */
function withPosition (found: Finding, subject: Subject): Finding {
  const file = found.file ?? basename(subject.skill.metadata.path)
  if (found.line !== undefined) return { ...found, file }
  const source = found.field === undefined ? undefined : frontmatterOf(subject)
  if (source === undefined) return found
  return { ...found, file, ...fieldPositions(source).get(found.field ?? '') ?? { line: 1, column: 1 } }
}

/** A folder of skills among skills: the finding that SKILL.md is missing names those below. */
function withNestedSkills (found: Finding, { files = [] }: Subject): Finding {
  if (found.code !== 'main_file_missing') return found
  const nested = nestedSkills(files)
  if (nested.length === 0) return found
  return {
    ...found,
    ...finding('main_file_missing', `SKILL.md is missing, but there are skills below: ${quoteList(nested)}`,
      'Serve this folder itself as a folder of skills, choose --layout tree, or move ' +
        `${nested.length === 1 ? 'that skill' : 'those skills'} up`)
  }
}
