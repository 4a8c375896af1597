import { join } from 'node:path'
import t from 'tap'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
import type { SkillReport } from '../../src/validate/report/reporter.ts'
import { validate } from '../../src/validate/validate.ts'
import { skills, skillText } from '../helper/skills.ts'

t.test('K79: every skill is judged, up to the largest main file; one that went away is passed over', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']
  const cwd = t.testdir({ ...skills(...names), a: { 'SKILL.md': skillText('a').padEnd(MAX_MAIN_FILE_BYTES) } })
  const path = join(cwd, 'gone')
  const reports: SkillReport[] = []
  const progress: Array<readonly [done: number, total: number]> = []
  const totals = await validate({
    paths: ['.'],
    cwd,
    folders: [['gone', { name: 'gone', type: 'project', path, realPath: path, linked: false }]],
    targets: undefined,
    sources: [],
    reporter: { skill: (report) => { reports.push(report) }, end () {} },
    onProgress: (...counts) => { progress.push(counts) }
  })
  t.strictSame(reports.map((report) => report.path), names)
  t.strictSame(totals, { skills: 10, error: 0, warning: 0, info: 0, accepted: 0 })
  t.strictSame(progress, names.map((_, index) => [index + 1, 11]))
  t.ok(reports.every(({ tokens }) => Number(tokens().body) > 0))
})
