import { relative, sep } from 'node:path'
import { describeState } from '../core/listing/entry.ts'
import { SkillError } from '../core/shared/errors.ts'
import type { FindingSeverity } from '../core/shared/skill.ts'
import {
  estimateTokens, type FindingSource, type Subject, subjectOf, type TargetName, verdictsOf
} from '../verdicts/index.ts'
import type { Baseline } from './baseline.ts'
import { type Reporter, SEVERITIES, type Totals } from './report/reporter.ts'
import { type OpenedSkills, type Place, type ReadOptions, withSkills } from './with-skills.ts'

interface ValidateOptions extends ReadOptions {
  readonly places: readonly Place[]
  /** Where relative paths begin. */
  readonly cwd: string
  /** The clients that decide on severities. Undefined when none was chosen. */
  readonly targets: readonly TargetName[] | undefined
  readonly reporter: Reporter
  readonly sources: readonly FindingSource[]
  /** Findings of at least this severity are reported. */
  readonly reportFrom?: FindingSeverity | 'never'
  readonly baseline?: Baseline | undefined
  /** Called with how many skills were validated, and how many there are. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined
}

/** A skill of a place, as reports name it. */
interface NamedSkill {
  readonly path: string
  readonly subject: Subject
  readonly revision: string | null
}

/** Skills that are read at a time: one waits for the thread pool while another is parsed. */
const READ_AT_ONCE = 8

/**
 * Validates all skills of all places, each once, and reports each when it was read, in their order.
 * @throws {PathError} before anything is reported
 */
export async function validate (options: ValidateOptions): Promise<Totals> {
  const { places, cwd, targets, reporter, sources, reportFrom = 'info', baseline, onProgress } = options
  return await withSkills(places, options, async (opened) => {
    const totals: Totals = { skills: 0, error: 0, warning: 0, info: 0, accepted: 0 }
    const count = opened.reduce((sum, { names }) => sum + names.length, 0)
    reporter.begin?.()
    for await (const { path, subject, revision } of readAll(opened, cwd, sources)) {
      const { findings, targets: verdicts } = verdictsOf(subject, targets)
      const fresh = findings.filter(({ code }) => baseline?.accepts(path, code) !== true)
      totals.skills++
      totals.accepted += findings.length - fresh.length
      for (const { severity } of fresh) totals[severity]++
      const shown = fresh.filter(({ severity }) => reaches(severity, reportFrom))
      reporter.skill({
        path, skill: subject.skill, revision, verdicts, findings: shown, tokens: () => estimateTokens(subject)
      })
      onProgress?.(totals.skills, count)
    }
    reporter.end(totals)
    return totals
  })
}

async function * readAll (
  opened: readonly OpenedSkills[], cwd: string, sources: readonly FindingSource[]
): AsyncGenerator<NamedSkill> {
  const seen = new Set<string>()
  for (const { place, skills, names } of opened) {
    const read = async (name: string): Promise<NamedSkill | undefined> => {
      try {
        const { subject, revision } = await skills.read(name, (state) => describeState(state, async (entry) =>
          ({ findings: [], subject: await subjectOf(entry, sources) })))
        return { path: reportedPath(place, subject, cwd), subject, revision }
      } catch (error) {
        // It went away after it was listed.
        if (error instanceof SkillError && error.code === 'skill_not_found') return undefined
        throw error
      }
    }
    for (let at = 0; at < names.length; at += READ_AT_ONCE) {
      for (const skill of await Promise.all(names.slice(at, at + READ_AT_ONCE).map(read))) {
        if (skill === undefined || seen.has(skill.path)) continue
        seen.add(skill.path)
        yield skill
      }
    }
  }
}

/** A skill of a fetched source is called as if it lay in a folder of the source's name. */
function reportedPath ({ root, isFetched }: Place, { skill: { name, metadata } }: Subject, cwd: string): string {
  return isFetched === true ? `${root.name}/${name}` : shownPath(cwd, metadata.skillPath)
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
