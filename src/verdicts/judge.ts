import { basename } from 'node:path/posix'
import { finding, type FindingCode, quoteList } from '../core/format/findings.ts'
import { quote } from '../core/shared/text.ts'
import { locateFrontmatter } from '../core/format/fences.ts'
import { fieldPositions } from '../core/format/positions.ts'
import type { Finding, FindingSeverity } from '../core/shared/skill.ts'
import { CONDITIONS } from './conditions.ts'
import { OUTCOMES_BY_CODE } from './outcomes.ts'
import { nestedSkills, targetFindings } from './rules/rules.ts'
import type { Subject } from './subject.ts'
import { OUTCOMES, type Outcome, TARGETS, type TargetName } from './targets.ts'

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
  'discovery_main_file_ambiguous',
  'discovery_frontmatter_repaired'
])

/** Why a main file is not a file of the skill. That it is left out of the manifest is the same mistake. */
const MAIN_FILE_LEFT_OUT: ReadonlySet<string> =
  new Set<FindingCode>(['main_file_not_a_file', 'main_file_permission_denied', 'main_file_unreadable'])
const LEFT_OUT: ReadonlySet<string> =
  new Set<FindingCode>(['link_outside', 'link_to_folder', 'file_special', 'file_unreadable'])

/** A finding, and what it comes to for each target that minds it. */
export interface JudgedFinding {
  readonly found: Finding
  readonly outcomes: ReadonlyMap<TargetName, Outcome>
  /** Whether clients decide on its severity. One without outcomes concerns every reader, and keeps its own. */
  readonly isOfTargets: boolean
}

/** All findings of one state of a skill, for all targets. Pure, never throws. */
export function judgeFindings (subject: Subject): readonly JudgedFinding[] {
  const all = [...subject.skill.findings, ...subject.otherFindings, ...targetFindings(subject)]
    .map((found) => judge(withPosition(withNestedSkills(found, subject), subject), subject))
  return all.filter((each) => !isEcho(each, all))
}

/**
 * What each client does with a skill, for every API.
 * @param targets the clients that decide on severities: `not_loaded` and `refused` are errors, other outcomes warnings,
 * and what none of them minds is an info. Default: the format.
 */
export function verdictsOn (judged: readonly JudgedFinding[], targets = DEFAULT_TARGETS): Verdicts {
  return {
    targets: targets.map((target) => verdictOf(target, judged)),
    findings: judged.map(({ found, outcomes, isOfTargets }) => ({
      ...found,
      ...isOfTargets && { severity: severityFor(targets, outcomes) },
      ...outcomes.size > 0 && { targets: [...outcomes.keys()] }
    }))
  }
}

/** Both at once. */
export function verdictsOf (subject: Subject, targets?: readonly TargetName[]): Verdicts {
  return verdictsOn(judgeFindings(subject), targets)
}

function judge (found: Finding, subject: Subject): JudgedFinding {
  const possible = OUTCOMES_BY_CODE.get(found.code) ?? []
  const outcomes = new Map<TargetName, Outcome>()
  for (const { target, outcome, when } of possible) {
    if (when === undefined || CONDITIONS[when](subject, found)) {
      outcomes.set(target, worse(outcome, outcomes.get(target) ?? 'ok'))
    }
  }
  return { found, outcomes: inOrder(outcomes), isOfTargets: possible.length > 0 }
}

function inOrder (outcomes: ReadonlyMap<TargetName, Outcome>): ReadonlyMap<TargetName, Outcome> {
  return new Map((Object.keys(TARGETS) as TargetName[]).flatMap((target) => {
    const outcome = outcomes.get(target)
    return outcome === undefined ? [] : [[target, outcome] as const]
  }))
}

function worse (a: Outcome, b: Outcome): Outcome {
  return OUTCOMES.indexOf(a) >= OUTCOMES.indexOf(b) ? a : b
}

function isEcho ({ found, outcomes }: JudgedFinding, all: readonly JudgedFinding[]): boolean {
  // YAML refuses them, so that they are named there.
  if (found.code === 'control_characters') {
    return all.some((other) => other.found.code.startsWith('yaml_') && other.found.line === found.line)
  }
  if (LEFT_OUT.has(found.code)) {
    return all.some((other) => MAIN_FILE_LEFT_OUT.has(other.found.code) && isAbout(found, other.found.file))
  }
  if (!ECHOES.has(found.code)) {
    return found.code === 'mcp_limits_exceeded' &&
    all.some((other) => other.found.code === 'mcp_too_many_files')
  }
  return all.some((other) => !ECHOES.has(other.found.code) &&
    Array.from(outcomes)
      .every(([target, outcome]) => worse(other.outcomes.get(target) ?? 'ok', outcome) === other.outcomes.get(target)))
}

/** Whether a finding names this file alone: names stand at the end of its message. */
function isAbout ({ message }: Finding, file: string | undefined): boolean {
  return file !== undefined && message.endsWith(`: ${quote(file)}`)
}

function verdictOf (target: TargetName, judged: readonly JudgedFinding[]): TargetVerdict {
  let verdict: Outcome = 'ok'
  const because = new Set<string>()
  for (const { found, outcomes } of judged) {
    const outcome = outcomes.get(target)
    if (outcome === undefined) continue
    verdict = worse(verdict, outcome)
    because.add(found.code)
  }
  return { target, verdict, ...because.size > 0 && { because: [...because] }, read: TARGETS[target].read }
}

function severityFor (targets: readonly TargetName[], outcomes: ReadonlyMap<TargetName, Outcome>): FindingSeverity {
  const worst = targets.reduce<Outcome>((sum, target) => worse(sum, outcomes.get(target) ?? 'ok'), 'ok')
  if (worst === 'ok') return 'info'
  return worst === 'not_loaded' || worst === 'refused' ? 'error' : 'warning'
}

/** Clients of other APIs know which field or file they mind, and no line. */
function withPosition (found: Finding, { mainFile, skill }: Subject): Finding {
  if (found.line !== undefined) {
    return found.file === undefined ? { ...found, file: basename(skill.metadata.path) } : found
  }
  if (found.field === undefined || mainFile === undefined) return found
  const location = locateFrontmatter(mainFile)
  if (location.kind !== 'found') return found
  const position = fieldPositions(mainFile.toString('utf8', location.start, location.end))
    .get(found.field) ?? { line: 1, column: 1 }
  return { ...found, file: found.file ?? basename(skill.metadata.path), ...position }
}

/** A folder of skills among skills: the finding that SKILL.md is missing names those below. */
function withNestedSkills (found: Finding, { files = [] }: Subject): Finding {
  if (found.code !== 'main_file_missing') return found
  const nested = nestedSkills(files)
  if (nested.length === 0) return found
  return {
    ...found,
    ...finding('main_file_missing', `SKILL.md is missing, but there are skills below: ${quoteList(nested)}`,
      'Serve this folder itself as a folder of skills, or move ' +
        `${nested.length === 1 ? 'that skill' : 'those skills'} up`)
  }
}
