import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createNetworkDisk, type Disk } from '../../../src/core/read/disk.ts'
import { sha256 } from '../../../src/core/shared/digest.ts'
import {
  countOpenBelow, createFaultyDisk, failing, osError, outcome, passTick, skill, startManager
} from '../../helper/skills.ts'

const HOUR_MS = 3_600_000

async function pathsIn (t: Test, root: string, disk?: Disk): Promise<readonly string[]> {
  const manager = await startManager(t, [root], disk && { disk })
  return (await manager.read('demo', (skill) => skill.manifest())).files.map(({ path }) => path)
}

t.test('K8 K43: what is not served is not listed', async (t) => {
  const link = (target: string) => t.fixture('symlink', target)
  const base = t.testdir({
    secret: { a: 'secret' },
    root: {
      other: skill('other'),
      demo: skill('demo', {
        docs: { 'a.md': '' },
        '.git': { config: '' },
        sub: { '.svn': { x: '' }, '.hg': { x: '' }, '.env': '', '.gitignore': '' },
        '.env': '',
        '.env.example': '',
        inside: link('docs/a.md'),
        chain: link('inside'),
        'to-folder': link('docs'),
        'to-itself': link('.'),
        outside: link('../../secret/a'),
        passwd: link('/etc/passwd'),
        sibling: link('../other/SKILL.md'),
        'sibling-folder': link('../other'),
        parent: link('..'),
        everything: link('/'),
        dangling: link('nothing'),
        loop: link('loop'),
        'to-env': link('.env'),
        'to-git': link('.git/config')
      })
    }
  })
  execFileSync('mkfifo', [join(base, 'root/demo/fifo')])
  fs.writeFileSync(Buffer.concat([Buffer.from(`${base}/root/demo/`), Buffer.from([0xff])]), '')
  const expected = ['.env.example', 'SKILL.md', 'chain', 'docs/a.md', 'inside', 'sub/.gitignore']
  for (const disk of [undefined, createFaultyDisk({ hasProc: false }),
    createNetworkDisk()]) t.strictSame(await pathsIn(t, join(base, 'root'), disk), expected)
})

t.test('K49: copies of a skill have one revision; each difference has another', async (t) => {
  const content = () => skill('demo', { docs: { 'a.md': 'a', 'b.md': 'b' } })
  const base = t.testdir({ one: { demo: content() }, two: { demo: content() } })
  fs.utimesSync(join(base, 'two/demo/docs/a.md'), 1, 1)
  fs.chmodSync(join(base, 'two/demo/docs/a.md'), 0o755)
  const [one, two] = [await startManager(t, [join(base, 'one')]), await startManager(t, [join(base, 'two')])]
  const { revision } = await one.read('demo', (skill) => skill.manifest())
  t.equal((await two.read('demo', (skill) => skill.manifest())).revision, revision)
  t.same(await two.read('demo', (skill) => skill.manifest()), await one.read('demo', (skill) => skill.manifest()))
  const seen = new Set([revision])
  for (const change of [
    () => fs.writeFileSync(join(base, 'two/demo/docs/a.md'), 'x'),
    () => fs.renameSync(join(base, 'two/demo/docs/a.md'), join(base, 'two/demo/docs/c.md')),
    () => fs.writeFileSync(join(base, 'two/demo/empty'), ''),
    () => fs.rmSync(join(base, 'two/demo/docs/b.md'))
  ]) {
    change()
    seen.add((await two.read('demo', (skill) => skill.manifest())).revision)
  }
  t.equal(seen.size, 5)
})

t.test('K53: a change during the walk is never half in the manifest', async (t) => {
  const base =
    t.testdir({ root: { demo: skill('demo', { a: 'one', z: 'one' }) }, next: skill('demo', { a: 'two', z: 'two' }) })
  const demo = join(base, 'root/demo')
  const flip = () => {
    fs.renameSync(demo, join(base, 'aside'))
    fs.renameSync(join(base, 'next'), demo)
    fs.renameSync(join(base, 'aside'), join(base, 'next'))
  }
  const consistent = new Set([['one', 'one'], ['two', 'two']].map((pair) => pair.map(sha256).join()))
  for (let moment = 1; ; moment++) {
    const disk = createFaultyDisk()
    const manager = await startManager(t, [join(base, 'root')], { disk })
    let operations = 0
    disk.intercept = () => { if (++operations === moment) flip() }
    const { files } = await manager.read('demo', (skill) => skill.manifest())
    const digests = files.filter(({ path }) => path !== 'SKILL.md').map(({ digest }) => digest).join()
    if (!consistent.has(digests)) t.fail(`a mixture when flipped before operation ${moment}`)
    if (operations >= moment) continue
    t.ok(moment > 5, `${moment} moments`)
    break
  }
})

t.test('K43 K51: what may not be read is left out, until it may be', async (t) => {
  const base = t.testdir({ demo: skill('demo', { file: 'a', docs: { 'a.md': 'a' }, locked: { 'b.md': 'b' } }) })
  const disk = createFaultyDisk({ ageMs: HOUR_MS })
  const manager = await startManager(t, [base], { disk })
  const paths = async () => (await manager.read('demo', (skill) => skill.manifest())).files.map(({ path }) => path)
  // A file of mode 000; a folder whose names may not be listed; one whose files may not even be looked at.
  disk.intercept = (operation, path) => {
    if (operation === 'open' && path.endsWith('demo/file')) throw osError('EACCES')
    if (operation === 'readdir' && path.endsWith('locked')) throw osError('EACCES')
    if (path.endsWith('docs/a.md')) throw osError('EACCES')
  }
  t.strictSame(await paths(), ['SKILL.md'])
  t.strictSame(await paths(), ['SKILL.md'])
  disk.intercept = () => {}
  passTick(base)
  fs.chmodSync(join(base, 'demo/file'), 0o600)
  t.strictSame(await paths(), ['SKILL.md', 'docs/a.md', 'file', 'locked/b.md'],
    'a mode is given to a file without a change to its folder')
})

t.test('K43 K53: a failing disk is an I/O error, takes no file for gone, and leaves nothing open', async (t) => {
  const base = t.testdir({ demo: skill('demo', { a: 'a', docs: { b: 'b' }, link: t.fixture('symlink', 'a') }) })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [base], { disk })
  const failures = [['read', ''], ['fstat', ''], ['readdir', 'docs'], ['stat', 'docs'], ['lstat', '/a'],
    ['stat', '/link']] as const
  for (const [operation, ending] of failures) {
    disk.intercept = failing(operation, ending, operation === 'stat' ? 'ESTALE' : 'EIO')
    t.equal(await outcome(() => manager.read('demo', (skill) => skill.manifest())),
      "SkillError: Error reading skill 'demo'", operation)
  }
  t.equal(countOpenBelow(base), 0)
})

t.test('K48: a skill of which no state holds is unavailable for now, after a bounded wait', async (t) => {
  const base = t.testdir({ demo: skill('demo', { a: 'a' }) })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [base], { disk })
  let writes = 0
  disk.intercept = (operation) => {
    if (operation === 'close') fs.writeFileSync(join(base, 'demo/a'), 'a'.repeat(++writes % 100))
  }
  const start = performance.now()
  await t.rejects(manager.read('demo', (skill) => skill.manifest()),
    { code: 'skill_changing', message: "Skill 'demo' changed while it was read" })
  t.ok(performance.now() - start < 20_000)
  disk.intercept = () => {}
  t.match(await manager.read('demo', (skill) => skill.manifest()), { skill_name: 'demo' })
})
