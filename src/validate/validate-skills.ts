import { existsSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isWithin, shownPath } from '../operator/files.ts'
import { describeState } from '../listing/entry.ts'
import { SkillError } from '../core/shared/errors.ts'
import type { FindingSeverity } from '../core/shared/skill.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import { validateFindings, verdictsOn } from '../verdicts/client-verdicts.ts'
import { subjectOf } from '../verdicts/entry.ts'
import type { TargetName } from '../verdicts/targets.ts'
import { estimateTokens } from '../verdicts/tokens.ts'
import { type FailOn, type Reporter, SEVERITIES, type Totals } from './report.ts'

/** Skills of one folder that a command has opened. */
export interface OpenedSkills {
  readonly folder: string
  readonly skills: SkillManager
  /** Names of the skills to read. */
  readonly names: readonly string[]
  /** Whether the caller named this skill, rather than its folder. */
  readonly isOneSkill: boolean
  /** Returns the path of a skill in reports. */
  readonly pathOf: (skillPath: string, name: string) => string
}

interface ValidateOptions {
  /** Targets that decide on severities; undefined if none was chosen. */
  readonly targets: readonly TargetName[] | undefined
  readonly reporter: Reporter
  /** Lowest severity that is reported. */
  readonly reportFrom?: FailOn
  /** Whether the baseline accepts a finding of the skill with this path. */
  readonly accepts?: (path: string, code: string) => boolean
  /** Maps the path of a skill to the one that the report shows. */
  readonly reportedPath?: (path: string) => string
}

/** Validates each skill once, and reports it as soon as it was read. */
export async function validate (
  opened: readonly OpenedSkills[],
  { targets, reporter, reportFrom = 'info', accepts = () => false, reportedPath = (path) => path }: ValidateOptions
): Promise<Totals> {
  const totals: Totals = { skills: 0, error: 0, warning: 0, info: 0, accepted: 0 }
  const seen = new Set<string>()
  for (const { skills, names, pathOf } of opened) {
    for (const name of names) {
      const read = await readSkill(skills, name)
      const path = pathOf(read?.subject.skill.metadata.skillPath ?? '', name)
      if (read === undefined || seen.has(path)) continue
      seen.add(path)
      const { subject, revision } = read
      const validated = validateFindings(subject)
      const fresh = validated.filter(({ found: { code } }) => !accepts(path, code))
      const { findings, targets: verdicts } = verdictsOn(fresh, targets)
      totals.skills++
      totals.accepted += validated.length - fresh.length
      for (const { severity } of findings) totals[severity]++
      const shown = findings.filter(({ severity }) => reaches(severity, reportFrom))
      const tokens = () => estimateTokens(subject)
      reporter.skill({ path: reportedPath(path), skill: subject.skill, revision, verdicts, findings: shown, tokens })
    }
  }
  reporter.end?.(totals)
  return totals
}

/** Reads a skill; undefined for one that went away after it was listed. */
async function readSkill (skills: SkillManager, name: string) {
  return await skills.read(name, (state) => describeState(state, async (entry) =>
    ({ findings: [], subject: await subjectOf(entry) }))).catch((error: unknown) => {
    if (!(error instanceof SkillError && error.code === 'skill_not_found')) throw error
  })
}

/** Returns whether a severity is at least as high as another one. */
export function reaches (severity: FindingSeverity, least: FailOn): boolean {
  return least !== 'never' && SEVERITIES.indexOf(severity) <= SEVERITIES.indexOf(least)
}

/**
 * Returns the path of a skill in its repository: from the workspace of GitHub Actions, else from the root of its
 * checkout. Skills of sources have no path here.
 */
export function pathInRepository (path: string, cwd: string, workspace: string | undefined): string {
  const absolute = resolve(cwd, path)
  if (!existsSync(absolute)) return path
  const root = workspace !== undefined && existsSync(workspace) ? realpathSync(workspace) : undefined
  return shownPath(root !== undefined && isWithin(absolute, root) ? root : checkoutOf(absolute) ?? cwd, absolute)
}

/** Returns the nearest folder with `.git`, which is a file in a work tree. */
function checkoutOf (path: string): string | undefined {
  for (let folder = path; folder !== dirname(folder); folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) return folder
  }
  return undefined
}
