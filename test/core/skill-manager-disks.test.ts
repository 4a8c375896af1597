import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { createNetworkDisk } from '../../src/core/disk/disk.ts'
import type { SkillManager } from '../../src/core/skill-manager.ts'
import { usedMemory } from '../helper/memory.ts'
import { countOpenBelow, createFaultyDisk, osError, outcome, skill, skillText, startManager, textOf, until } from '../helper/skills.ts'

const HOUR_MS = 3_600_000
const MEBIBYTE = 1_048_576
/** As the runner has translated it. */
const SRC = fileURLToPath(import.meta.resolve('../../src/core/'))

/** The same questions to two managers over the same disk. */
async function answers (manager: SkillManager): Promise<unknown[]> {
  const all: unknown[] = [await manager.list()]
  for (const name of [...await manager.list(), 'nothing', '', '..']) {
    const found = await outcome(() => manager.find(name)) as { findings?: unknown, digest?: unknown } | undefined
    all.push(name, found?.findings, found?.digest, await outcome(() => manager.manifest(name)))
    for (const preference of ['SKILL.MD', 'SKILL.md'] as const) all.push(await textOf(() => manager.readMainFile(name, preference)))
    for (const file of ['SKILL.md', 'SKILL.MD', 'docs/a.md', 'docs', 'out', 'inside', 'fifo', '../x', '', 'a\0', '.env', 'dangling']) all.push(await textOf(() => manager.readFile(name, file)))
  }
  return all
}

function createMixedRoot (t: Test): string {
  const link = (target: string) => t.fixture('symlink', target)
  const base = t.testdir({
    secret: 'secret',
    root: {
      demo: skill('demo', { docs: { 'a.md': 'a' }, out: link('../../secret'), inside: link('docs/a.md'), '.env': '', dangling: link('x') }),
      both: { 'SKILL.md': 'md', 'SKILL.MD': 'MD' },
      empty: {},
      folder: { 'SKILL.md': {} },
      latin: { 'SKILL.md': Buffer.from([0x63, 0xe9]) },
      leaving: { 'SKILL.md': link('../../secret') },
      alias: link('demo'),
      outside: link('..'),
      file: ''
    }
  })
  execFileSync('mkfifo', [join(base, 'root/demo/fifo')])
  return join(base, 'root')
}

t.test('a network disk, and one without /proc, give the same answers as a local one', async (t) => {
  const root = createMixedRoot(t)
  const expected = await answers(await startManager(t, [root]))
  for (const disk of [
    createNetworkDisk(), createFaultyDisk({ hasProc: false }), createFaultyDisk({ disk: createNetworkDisk(), hasProc: false }), createFaultyDisk({ ageMs: HOUR_MS })
  ]) {
    const manager = await startManager(t, [root], { disk })
    t.strictSame(await answers(manager), expected)
    t.strictSame(await answers(manager), expected, 'again')
  }
})

t.test('no descriptor stays open after 2,000 mixed reads, failures included', async (t) => {
  const root = createMixedRoot(t)
  fs.writeFileSync(join(root, 'demo/large'), Buffer.alloc(300_000))
  for (const disk of [createFaultyDisk(), createFaultyDisk({ disk: createNetworkDisk() }), createFaultyDisk({ hasProc: false })]) {
    const manager = await startManager(t, [root], { disk })
    await answers(manager)
    let operations = 0
    disk.intercept = (operation) => { if (operation !== 'close' && ++operations % 17 === 0) throw osError(operations % 2 === 0 ? 'EIO' : 'EACCES') }
    const areEnough = () => operations > 2_000
    while (!areEnough()) await answers(manager)
    await Promise.all(Array.from({ length: 100 }, async () => {
      const file = await Promise.resolve(manager.openFile('demo', 'large')).catch(() => undefined)
      if (file?.kind === 'stream') await file.file.close()
    }))
    t.comment(`${operations} operations`)
    // The index follows in the background, and a folder is open while it is listed.
    disk.intercept = () => {}
    await until(() => countOpenBelow(root) === 0)
  }
})

const AS_NOBODY = ['--reuid=65534', '--regid=65534', '--clear-groups']
const canBecomeNobody = spawnSync('setpriv', [...AS_NOBODY, process.execPath, '-e', '0']).status === 0

t.test('K14 K16 K18: permissions, for real', { skip: canBecomeNobody ? false : 'needs root and setpriv' }, async (t) => {
  // Not below the checkout: another user may not be allowed to search its parents.
  const base = fs.mkdtempSync(join(tmpdir(), 'skills-'))
  t.teardown(() => execFileSync('rm', ['-rf', base]))
  fs.chmodSync(base, 0o755)
  fs.cpSync(SRC, join(base, 'src'), { recursive: true })
  fs.symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(base, 'node_modules'))
  fs.writeFileSync(join(base, 'package.json'), '{"type":"module"}')
  const root = join(base, 'root')
  for (const name of ['open', 'mode-file', 'mode-folder', 'mode-skill', 'locked-link', 'unsearchable']) {
    fs.mkdirSync(join(root, name, 'docs'), { recursive: true })
    fs.writeFileSync(join(root, name, 'SKILL.md'), skillText(name))
    fs.writeFileSync(join(root, name, 'docs/a.md'), 'a')
  }
  fs.mkdirSync(join(base, 'private'))
  fs.writeFileSync(join(base, 'private/there'), '')
  fs.symlinkSync('../../private/there', join(root, 'locked-link/there'))
  fs.symlinkSync('../../private/not-there', join(root, 'locked-link/not-there'))
  fs.symlinkSync('docs/a.md', join(root, 'mode-file/link'))
  fs.mkdirSync(join(base, 'locked-root/demo'), { recursive: true })
  fs.chmodSync(join(base, 'private'), 0)
  fs.chmodSync(join(root, 'mode-file/SKILL.md'), 0)
  fs.chmodSync(join(root, 'mode-file/docs/a.md'), 0)
  fs.chmodSync(join(root, 'mode-folder/docs'), 0)
  fs.chmodSync(join(root, 'mode-skill'), 0)
  fs.chmodSync(join(root, 'unsearchable/docs'), 0o444)
  fs.chmodSync(join(base, 'locked-root'), 0)
  const script = `
    import { createSkillManager } from './src/skill-manager.js'
    const root = process.argv[2]
    const create = async (root) => { const manager = createSkillManager({ projectRoots: [root], watcher: false }); await manager.initialize(); return manager }
    const ask = async (question) => { try { const answer = await question(); return answer.bytes?.toString() ?? answer.files?.map(({ path }) => path) ?? answer } catch (error) { return error.message } }
    const manager = await create(root + '/root')
    const out = {
      list: await ask(() => manager.list()),
      open: await ask(() => manager.readFile('open', 'docs/a.md')),
      document: await ask(() => manager.readMainFile('mode-file', 'SKILL.MD')),
      file: await ask(() => manager.readFile('mode-file', 'docs/a.md')),
      link: await ask(() => manager.readFile('mode-file', 'link')),
      folder: await ask(() => manager.readFile('mode-folder', 'docs/a.md')),
      unsearchable: await ask(() => manager.readFile('unsearchable', 'docs/a.md')),
      skill: await ask(() => manager.readMainFile('mode-skill', 'SKILL.MD')),
      skillFile: await ask(() => manager.readFile('mode-skill', 'docs/a.md')),
      there: await ask(() => manager.readFile('locked-link', 'there')),
      notThere: await ask(() => manager.readFile('locked-link', 'not-there')),
      manifests: [await ask(() => manager.manifest('mode-file')), await ask(() => manager.manifest('mode-folder')), await ask(() => manager.manifest('unsearchable'))],
      locked: await ask(async () => (await create(root + '/locked-root')).list())
    }
    console.log(JSON.stringify(out))`
  fs.writeFileSync(join(base, 'run.js'), script)
  fs.chmodSync(join(base, 'run.js'), 0o644)
  const ran = spawnSync('setpriv', [...AS_NOBODY, process.execPath, join(base, 'run.js'), base], { cwd: base })
  t.equal(ran.status, 0, ran.stderr.toString())
  const traversal = 'Path traversal detected: cannot access files outside skill folder'
  t.strictSame(JSON.parse(ran.stdout.toString() || '{}'), {
    list: ['locked-link', 'mode-file', 'mode-folder', 'mode-skill', 'open', 'unsearchable'],
    open: 'a',
    document: "Permission denied reading SKILL.MD for skill 'mode-file'",
    file: "Cannot read file 'docs/a.md': permission denied",
    link: "Cannot read file 'link': permission denied",
    folder: "Cannot read file 'docs/a.md': permission denied",
    unsearchable: "Cannot read file 'docs/a.md': permission denied",
    skill: "Permission denied reading SKILL.MD for skill 'mode-skill'",
    skillFile: "Cannot read file 'docs/a.md': permission denied",
    there: traversal,
    notThere: traversal,
    manifests: [[], ['SKILL.md'], ['SKILL.md']],
    locked: 'Permission denied reading skills folder'
  })
})

t.test('K32: 100 loaded skills of 1 MiB take less than 50 MB', async (t) => {
  const text = 'text '.repeat(MEBIBYTE / 5)
  const root = t.testdir(Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`skill-${index}`, { 'SKILL.md': text }])))
  const before = usedMemory()
  const manager = await startManager(t, [root])
  for (const name of await manager.list()) await manager.readMainFile(name, 'SKILL.md')
  const used = usedMemory() - before
  t.ok(used < 50_000_000, `${used} bytes`)
})
