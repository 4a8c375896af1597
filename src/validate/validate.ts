import { relative, sep } from 'node:path'
import { describeState } from '../core/listing/entry.ts'
import { SkillError } from '../core/shared/errors.ts'
import type { FindingSeverity } from '../core/shared/skill.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import { estimateTokens, subjectOf, type TargetName, verdictsOf } from '../verdicts/index.ts'
import { type Reporter, SEVERITIES, type Totals } from './report/reporter.ts'

/** Skills of one folder, while a command reads them. */
export interface OpenedSkills {
  readonly folder: string
  readonly skills: SkillManager
  /** Of those that are read. */
  readonly names: readonly string[]
  /** Whether the caller has named this skill, and not the folder. */
  readonly isOneSkill: boolean
  /** What reports call a skill. */
  readonly pathOf: (skillPath: string, name: string) => string
}

interface ValidateOptions {
  /** The clients that decide on severities. Undefined when none was chosen. */
  readonly targets: readonly TargetName[] | undefined
  readonly reporter: Reporter
  /** Findings of at least this severity are reported. */
  readonly reportFrom?: FindingSeverity | 'never'
  /** Whether a finding of the skill with this path counts no longer. */
  readonly accepts?: (path: string, code: string) => boolean
}

/** Validates all skills, each once, and reports each when it was read, in their order. */
export async function validate (
  opened: readonly OpenedSkills[],
  { targets, reporter, reportFrom = 'info', accepts = () => false }: ValidateOptions
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
      const { findings, targets: verdicts } = verdictsOf(subject, targets)
      const fresh = findings.filter(({ code }) => !accepts(path, code))
      totals.skills++
      totals.accepted += findings.length - fresh.length
      for (const { severity } of fresh) totals[severity]++
      const shown = fresh.filter(({ severity }) => reaches(severity, reportFrom))
      const tokens = () => estimateTokens(subject)
      reporter.skill({ path, skill: subject.skill, revision, verdicts, findings: shown, tokens })
    }
  }
  reporter.end?.(totals)
  return totals
}

/** Undefined for a skill that went away after it was listed. */
async function readSkill (skills: SkillManager, name: string) {
  try {
    return await skills.read(name, (state) => describeState(state, async (entry) =>
      ({ findings: [], subject: await subjectOf(entry) })))
  } catch (error) {
    if (error instanceof SkillError && error.code === 'skill_not_found') return undefined
    throw error
  }
}

/** Whether a severity is at least another one. */
export function reaches (severity: FindingSeverity, least: FindingSeverity | 'never'): boolean {
  return least !== 'never' && SEVERITIES.indexOf(severity) <= SEVERITIES.indexOf(least)
}

/** From where the caller is, with `/` on every platform; absolute for what lies elsewhere. */
export function shownPath (cwd: string, path: string): string {
  const shown = relative(cwd, path)
  if (shown === '') return '.'
  return (shown.startsWith('..') ? path : shown).split(sep).join('/')
}
