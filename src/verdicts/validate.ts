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

/** Reasons of MCP's list and of the indexes that count only where no other finding explains the outcome. */
const ECHOES: ReadonlySet<string> = new Set<FindingCode>([
  'mcp_skill_invalid', 'mcp_refused', 'mcp_main_file_casing', 'discovery_skill_invalid', 'discovery_main_file_missing',
  'discovery_main_file_ambiguous'
])

/** Reasons about the form of one line: a finding about the form of that line takes their outcomes. */
const ABOUT_FORM: ReadonlySet<string> = new Set<FindingCode>([
  'mcp_refused', 'discovery_frontmatter_repaired', 'discovery_frontmatter_differs'
])

/** Why a main file is not a file of the skill. That it is left out of the manifest is the same mistake. */
const MAIN_FILE_LEFT_OUT: ReadonlySet<string> =
  new Set<FindingCode>(['main_file_not_a_file', 'main_file_permission_denied', 'main_file_unreadable'])
const LEFT_OUT: ReadonlySet<string> =
  new Set<FindingCode>(['link_outside', 'link_to_folder', 'file_special', 'file_unreadable'])

/** A finding, and what it comes to for each target that minds it. */
export interface ValidatedFinding {
  readonly found: Finding
  readonly outcomes: ReadonlyMap<TargetName, Outcome>
  /** Whether clients decide on its severity. One without outcomes concerns every reader, and keeps its own. */
  readonly isOfTargets: boolean
}

/** All findings of one state of a skill, for all targets. Pure, never throws. */
export function validateFindings (subject: Subject): readonly ValidatedFinding[] {
  const all = [...subject.skill.findings, ...subject.otherFindings, ...targetFindings(subject)]
    .map((found) => validate(withPosition(withNestedSkills(found, subject), subject), subject))
  const merged = all.map((each) => {
    const echoes = all.filter((echo) => causeOf(echo, all) === each)
    return echoes.reduce(withOutcomesOf, each)
  })
  return merged.filter((each, index) => causeOf(all[index], all) === undefined && !isEcho(each, merged))
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
      ...outcomes.size > 0 && { targets: [...outcomes.keys()] }
    }))
  }
}

/** Both at once. */
export function verdictsOf (subject: Subject, targets?: readonly TargetName[]): Verdicts {
  return verdictsOn(validateFindings(subject), targets)
}

function validate (found: Finding, subject: Subject): ValidatedFinding {
  const possible = outcomesOf(found.code)
  const certain = possible.filter(({ when }) => when === undefined || CONDITIONS[when](subject, found))
  const outcomes = new Map(TARGET_NAMES.flatMap((name) => {
    const worst = worstOf(certain.flatMap(({ target, outcome }) => target === name ? outcome : []))
    return worst === 'ok' ? [] : [[name, worst] as const]
  }))
  return { found, outcomes, isOfTargets: possible.length > 0 }
}

function worstOf (outcomes: readonly Outcome[]): Outcome {
  return OUTCOMES[Math.max(0, ...outcomes.map((outcome) => OUTCOMES.indexOf(outcome)))] ?? 'ok'
}

/** The finding on the form of the line that another one is about, too. */
function causeOf (
  echo: ValidatedFinding | undefined, all: readonly ValidatedFinding[]
): ValidatedFinding | undefined {
  if (echo === undefined || !ABOUT_FORM.has(echo.found.code)) return undefined
  const causes = all.filter(({ found: { code } }) => code.startsWith('yaml_') || code === 'frontmatter_flow_style')
  return causes.find(({ found }) => found.line === echo.found.line) ??
    causes.find(({ found }) => found.code === 'yaml_repaired')
}

function withOutcomesOf (validated: ValidatedFinding, { outcomes: others }: ValidatedFinding): ValidatedFinding {
  const outcomes = new Map(TARGET_NAMES.flatMap((name) => {
    const worst = worstOf([validated.outcomes.get(name) ?? 'ok', others.get(name) ?? 'ok'])
    return worst === 'ok' ? [] : [[name, worst] as const]
  }))
  return { ...validated, outcomes }
}

function isEcho ({ found, outcomes }: ValidatedFinding, all: readonly ValidatedFinding[]): boolean {
  const { code, line } = found
  const isExplainedBy = ({ found: other, outcomes: others }: ValidatedFinding): boolean => {
    // YAML refuses them, so that they are named there.
    if (code === 'control_characters') return other.code.startsWith('yaml_') && other.line === line
    if (LEFT_OUT.has(code)) return MAIN_FILE_LEFT_OUT.has(other.code) && isAbout(found, other.file)
    if (code === 'mcp_limits_exceeded') return other.code === 'mcp_too_many_files'
    return ECHOES.has(code) && !ECHOES.has(other.code) &&
      [...outcomes].every(([target, outcome]) => worstOf([others.get(target) ?? 'ok', outcome]) === others.get(target))
  }
  return all.some(isExplainedBy)
}

/** Whether a finding names this file alone: names stand at the end of its message. */
function isAbout ({ message }: Finding, file: string | undefined): boolean {
  return file !== undefined && message.endsWith(`: ${quote(file)}`)
}

function verdictOf (target: TargetName, validated: readonly ValidatedFinding[]): TargetVerdict {
  const minded = validated.filter(({ outcomes }) => outcomes.has(target))
  const verdict = worstOf(minded.map(({ outcomes }) => outcomes.get(target) ?? 'ok'))
  const because = [...new Set(minded.map(({ found }) => found.code))]
  return { target, verdict, ...because.length > 0 && { because }, read: TARGETS[target].read }
}

function severityFor (targets: readonly TargetName[], outcomes: ReadonlyMap<TargetName, Outcome>): FindingSeverity {
  const worst = worstOf(targets.map((target) => outcomes.get(target) ?? 'ok'))
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
