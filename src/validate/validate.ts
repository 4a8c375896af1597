import { dirname, relative, sep } from 'node:path'
import { atOnce } from '../core/shared/async.ts'
import type { SkillFolder } from '../core/roots/list-root.ts'
import type { FindingSeverity } from '../core/shared/skill.ts'
import { estimateTokens, type FindingSource, type TargetName, verdictsOf } from '../verdicts/index.ts'
import type { Baseline } from './baseline.ts'
import { type Reporter, SEVERITIES, type SkillReport, type Totals } from './report/reporter.ts'
import { type ListOptions, type SkillOnDisk, SkillReader, skillsAt } from './skills.ts'

export type NamedFolder = readonly [path: string, folder: SkillFolder]

interface ValidateOptions extends ListOptions {
  /** As the caller gave them: folders of skills, skills, or SKILL.md files. */
  readonly paths: readonly string[]
  /** Skills of sources, besides those of the paths, with what they are called in reports. */
  readonly folders?: readonly NamedFolder[]
  /** Undefined when none was chosen. */
  readonly targets: readonly TargetName[] | undefined
  readonly reporter: Reporter
  readonly sources: readonly FindingSource[]
  /** Findings that are reported: those of at least this severity. */
  readonly reportFrom?: FindingSeverity | 'never'
  readonly baseline?: Baseline | undefined
  /** Receives how many skills were judged, and of how many. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined
}

/** Skills that are read at a time: one waits for the thread pool while another is parsed. */
const READ_AT_ONCE = 8

/**
 * Judges all skills of all paths, and reports each at once, in their order: memory does not grow with their number.
 * @throws {PathError} before anything is reported
 */
export async function validate ({ paths, folders: more = [], targets, reporter, sources, reportFrom = 'info', baseline, onProgress, ...list }: ValidateOptions): Promise<Totals> {
  const folders = [...(await foldersOf(paths, list)).map((folder): NamedFolder => [shownPath(list.cwd, folder.path), folder]), ...more]
  const reader = new SkillReader(sources, reporter.needsRevisions === true, [...new Set(folders.map(([, { realPath }]) => dirname(realPath)))])
  const totals: Totals = { skills: 0, error: 0, warning: 0, info: 0, accepted: 0 }
  reporter.begin?.()
  for await (const { path, read: { subject, revision } } of readAll(folders, reader)) {
    const { findings, targets: verdicts } = verdictsOf(subject, targets)
    const fresh = findings.filter(({ code }) => baseline?.accepts(path, code) !== true)
    totals.skills++
    totals.accepted += findings.length - fresh.length
    for (const { severity } of fresh) totals[severity]++
    const report: SkillReport = {
      path,
      skill: subject.skill,
      revision,
      verdicts,
      findings: fresh.filter(({ severity }) => reaches(severity, reportFrom)),
      tokens: () => atOnce(estimateTokens(subject))
    }
    reporter.skill(report)
    onProgress?.(totals.skills, folders.length)
  }
  reporter.end(totals)
  return totals
}

async function * readAll (folders: readonly NamedFolder[], reader: SkillReader): AsyncGenerator<{ path: string, read: SkillOnDisk }> {
  for (let at = 0; at < folders.length; at += READ_AT_ONCE) {
    const some = folders.slice(at, at + READ_AT_ONCE)
    for (const [index, read] of (await Promise.all(some.map(([, folder]) => reader.read(folder)))).entries()) {
      const [path] = some[index] ?? []
      if (path !== undefined && read !== undefined) yield { path, read }
    }
  }
}

/** Each folder once, in the order of the paths. */
export async function foldersOf (paths: readonly string[], list: ListOptions): Promise<readonly SkillFolder[]> {
  const folders = new Map<string, SkillFolder>()
  for (const path of paths) for (const folder of await skillsAt(path, list)) if (!folders.has(folder.path)) folders.set(folder.path, folder)
  return [...folders.values()]
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
