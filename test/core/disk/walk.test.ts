import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createNetworkDisk, type Disk } from '../../../src/core/read/disk.ts'
import type { Interceptor } from '../../helper/disk.ts'
import { createFaultyDisk, failing, outcome, skill, skillText, startManager } from '../../helper/skills.ts'

/** Goes down one folder at a time, as tar does: no absolute path of the system reaches what it makes. */
const NEST = `
  import fs from 'node:fs'
  process.chdir(process.argv[1])
  for (let left = Number(process.argv[2]); left > 0;) {
    const length = Math.min(left - 1, 200)
    const name = 'd'.repeat(left - 1 - length === 1 ? length - 1 : length)
    fs.mkdirSync(name)
    process.chdir(name)
    left -= name.length + 1
  }
  for (const name of process.argv.slice(3)) fs.writeFileSync(name, 'x')
  fs.mkdirSync('f'.repeat(100))
  process.chdir('f'.repeat(100))
  fs.writeFileSync('below', 'x')
`

/** A root with a skill in which a folder has an absolute path of 4,050 bytes. It holds these files, and a folder of 100 bytes. */
function nest (t: Test, ...files: readonly string[]): string {
  const root = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'deep-')))
  // `t.testdir` removes by absolute paths.
  t.teardown(() => { execFileSync('rm', ['-rf', root]) })
  const folder = join(root, 'demo')
  fs.mkdirSync(folder)
  fs.writeFileSync(join(folder, 'SKILL.md'), skillText('demo'))
  execFileSync(process.execPath, ['--input-type=module', '-e', NEST, folder, String(4_050 - folder.length), ...files], { timeout: 20_000 })
  return root
}

const LONG = 'x'.repeat(100)

const DISKS: Readonly<Record<string, () => Disk>> = {
  'a local disk': createFaultyDisk,
  'a network disk': createNetworkDisk,
  'a disk without /proc': () => createFaultyDisk({ hasProc: false })
}

for (const [kind, createDisk] of Object.entries(DISKS)) {
  t.test(`K4 K9: what no path of the system reaches is left out with a finding, on ${kind}`, async (t) => {
    const root = nest(t, 'near', LONG)
    const manager = await startManager(t, [root], { disk: createDisk() })
    const started = performance.now()
    const { files } = await manager.manifest('demo')
    t.strictSame(files.map(({ path }) => path.slice(-8)), ['SKILL.md', 'ddd/near'])
    t.ok((await manager.archive('demo')).size > 0)
    const findings = await manager.read('demo', (state) => state.fileFindings())
    t.match(findings, [{ code: 'file_path_too_long', message: /^files and folders whose paths are too long for the system are left out: 'ddd.*…', 'ddd.*…'$/ }])
    t.ok(performance.now() - started < 1_000, 'nothing waits for a state that holds')
  })
}

t.test('K53: a file whose state a failing disk does not tell is not taken for gone', async (t) => {
  const root = t.testdir({ demo: skill('demo', { a: 'a', link: t.fixture('symlink', 'a') }) })
  const disk = createFaultyDisk({ ageMs: 60_000 })
  const manager = await startManager(t, [root], { disk })
  const { files } = await manager.manifest('demo')
  const failures: Readonly<Record<string, Interceptor>> = {
    'while it is listed': failing('lstat', '/a', 'EIO'),
    'behind a link': failing('stat', '/link', 'ESTALE')
  }
  for (const [when, intercept] of Object.entries(failures)) {
    fs.writeFileSync(join(root, 'demo/b'), when)
    disk.intercept = intercept
    t.equal(await outcome(() => manager.manifest('demo')), "SkillError: Error reading skill 'demo'", when)
    disk.intercept = () => {}
    t.equal((await manager.manifest('demo')).files.length, files.length + 1)
  }
})
