import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { CatalogChange } from '../../src/core/catalog/catalog.ts'
import type { RootReport } from '../../src/core/roots/root-reports.ts'
import type { SkippedEntry } from '../../src/core/roots/scan-root.ts'
import { CatalogLog } from '../../src/core/catalog-log.ts'
import { Signal } from '../../src/core/shared/signal.ts'
import { createFaultyDisk, failing, skill, skills, skillText, startManager, until } from '../helper/skills.ts'

interface Line {
  readonly level: 'info' | 'warn'
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

function createLog () {
  const lines: Line[] = []
  const write = (level: Line['level']) => (details: object, message: string) => { lines.push({ level, message, details: { ...details } }) }
  return { log: { info: write('info'), warn: write('warn') }, lines, ofRoots: () => lines.filter(({ message }) => message.includes('a skills folder')) }
}

t.test('K70: at the start one line for each root in their order, with its absolute path, type, state and number of skills', async (t) => {
  const base = t.testdir({ good: skills('a', 'b'), empty: {}, itself: skill('itself', { scripts: {} }), file: 'no folder', mine: skills('c') })
  const { log, ofRoots } = createLog()
  const paths = ['good', 'empty', 'itself', 'file', 'absent'].map((name) => join(base, name))
  await startManager(t, paths, { log, personalRoot: join(base, 'mine') })
  t.match(ofRoots(), [
    { level: 'info', message: /^serving/, details: { root: join(base, 'good'), type: 'project', state: 'ok', skills: 2 } },
    { level: 'warn', message: /has no skills/, details: { root: join(base, 'empty'), state: 'ok', skills: 0 } },
    { level: 'warn', message: /is itself a skill/, details: { root: join(base, 'itself'), state: 'ok' } },
    { level: 'warn', message: /is missing/, details: { root: join(base, 'file'), state: 'missing' } },
    { level: 'warn', message: /is missing/, details: { root: join(base, 'absent'), state: 'missing', skills: 0 } },
    { level: 'info', message: /^serving/, details: { root: join(base, 'mine'), type: 'personal', state: 'ok', skills: 1 } }
  ], 'in the order of the roots')
  t.equal(ofRoots().length, 6)
})

t.test('K70: a source that was never fetched is named, and not a folder of the service that nobody has to make', async (t) => {
  const { log, lines } = createLog()
  const manager = await startManager(t, [{ path: join(t.testdir({}), 'internal'), name: 'team', listed: { folders: undefined, changed: new Signal(), isFixed: true } }], { log })
  t.match(lines[0], { level: 'info', message: 'a source has not been fetched yet; its skills are served when it has', details: { source: 'team', root: undefined } })
  t.match(lines.at(-1), { message: 'the skills are indexed', details: { roots: [{ name: 'team', state: 'waiting' }] } })
  t.match(await manager.freshStatus(), { roots: [{ name: 'team', state: 'waiting' }] }, 'as /readyz says it')
  t.notMatch(JSON.stringify(lines), /missing|internal/)
})

t.test('K70: a start that is asked for twice is logged once', async (t) => {
  const base = t.testdir({ good: skills('a') })
  const { log, lines } = createLog()
  const manager = await startManager(t, [join(base, 'good'), join(base, 'absent')], { log })
  await manager.start()
  await manager.initialize()
  t.strictSame(lines.map(({ message }) => message).filter((message) => /^serving|is missing|are indexed/.test(message)), [
    'serving a skills folder', 'a skills folder is missing, or is a file; it is served when it appears', 'the skills are indexed'
  ])
})

t.test('K4: a root of links that lead out has one line for each link, and then says why it has no skills', async (t) => {
  const base = t.testdir({ agents: skills('a'), links: { a: t.fixture('symlink', '../agents/a') } })
  const { log, ofRoots } = createLog()
  await startManager(t, [join(base, 'links')], { log })
  t.match(ofRoots(), [
    { level: 'warn', message: /since it leads out of it/, details: { name: 'a', setting: `--allow-links ${join(base, 'agents')}` } },
    { level: 'warn', message: /has no skills: what could be one is skipped/, details: { root: join(base, 'links'), skills: 0 } }
  ])
})

t.test('K70: each transition of a root is one line, however often it is asked', async (t) => {
  const base = t.testdir({})
  const root = join(base, 'root')
  const disk = createFaultyDisk()
  const { log, ofRoots } = createLog()
  const manager = await startManager(t, [root], { disk, log })

  async function leads (level: Line['level'], details: object): Promise<void> {
    const before = ofRoots().length
    for (let question = 0; question < 3; question++) await manager.freshStatus()
    t.equal(ofRoots().length, before + 1)
    t.match(ofRoots().at(-1), { level, details: { root, ...details } })
  }

  t.match(ofRoots(), [{ level: 'warn', details: { root, state: 'missing', before: undefined } }])
  fs.mkdirSync(root)
  await leads('warn', { state: 'ok', before: 'missing', skills: 0 })
  fs.mkdirSync(join(root, 'a'))
  await leads('info', { state: 'ok', before: 'ok', skills: 1 })
  disk.intercept = failing('readdir', '/root', 'EACCES')
  fs.mkdirSync(join(root, 'b'))
  await leads('warn', { state: 'unreadable', before: 'ok', skills: 0 })
  disk.intercept = failing('readdir', '/root', 'EIO')
  await leads('warn', { state: 'failed', err: { code: 'EIO' } })
  disk.intercept = () => {}
  await leads('info', { state: 'ok', before: 'failed', skills: 2 })
  fs.renameSync(root, `${root}-away`)
  await leads('warn', { state: 'missing', before: 'ok' })
  fs.renameSync(`${root}-away`, root)
  await leads('info', { state: 'ok', before: 'missing', skills: 2 })
})

t.test('K70: a skill that becomes invalid, or valid again, is one line with its first problem', async (t) => {
  const base = t.testdir({ root: skills('a', 'b') })
  const root = join(base, 'root')
  const { log, lines } = createLog()
  const manager = await startManager(t, [root], { log })
  const ofSkills = () => lines.filter(({ details }) => 'skill' in details)
  t.strictSame(ofSkills(), [])

  fs.writeFileSync(join(root, 'a/SKILL.md'), 'no frontmatter\n')
  for (let question = 0; question < 3; question++) await manager.find('a')
  t.match(ofSkills(), [{
    level: 'warn', message: /is not valid/, details: { skill: 'a', path: join(root, 'a'), code: 'frontmatter_missing', problem: /\w/ }
  }])
  fs.writeFileSync(join(root, 'a/SKILL.md'), 'still no frontmatter\n')
  await manager.find('a')
  t.equal(ofSkills().length, 1, 'another text of an invalid skill is no transition')
  fs.writeFileSync(join(root, 'a/SKILL.md'), skillText('a'))
  for (let question = 0; question < 3; question++) await manager.find('a')
  t.equal(ofSkills().length, 2)
  t.match(ofSkills().at(-1), { level: 'info', message: 'a skill is valid again', details: { skill: 'a' } })
})

t.test('K70: a thousand skills that break at once are twenty lines, and one with the number of the rest', async (t) => {
  const names = Array.from({ length: 1_000 }, (_, index) => `s${index}`)
  const changed = new Signal<CatalogChange>()
  let valid = false
  const get = (name: string) => ({
    valid,
    findings: [{ code: 'yaml_repaired', severity: 'warning', message: '', fix: '' }, { code: 'yaml_invalid', severity: 'error', message: `${name} is wrong`, fix: '' }] as const,
    metadata: { name, description: '', type: 'project', skillPath: `/root/${name}`, path: `/root/${name}/SKILL.md` } as const
  })
  const { log, lines } = createLog()
  const catalogLog = new CatalogLog({
    log, root: { path: '/root', type: 'project', states: new Signal<RootReport>(), failed: new Signal<unknown>(), skipped: new Signal<readonly SkippedEntry[]>() }, catalog: { changed, last: { get } }, disks: new Signal()
  })
  for (const part of [names.slice(0, 10), names.slice(10)]) changed.emit({ generation: 1, added: part, changed: [], removed: [] })
  t.equal(lines.length, 20)
  t.match(lines[0], { details: { skill: 's0', code: 'yaml_invalid', problem: 's0 is wrong' } })
  await until(() => lines.length > 20)
  t.match(lines[20], { level: 'warn', details: { invalid: 980, valid: 0 } })
  valid = true
  changed.emit({ generation: 2, added: [], changed: names, removed: [] })
  t.equal(lines.length, 41)
  catalogLog.close()
  t.match(lines[41], { details: { invalid: 0, valid: 980 } })
  valid = false
  changed.emit({ generation: 3, added: [], changed: [], removed: names })
  catalogLog.close()
  t.equal(lines.length, 42, 'what is removed is neither')
})
