import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { countOpenBelow, createFaultyDisk } from '../../helper/skills.ts'
import { readInside } from '../../helper/open-inside.ts'
import { startSwapper } from '../../helper/swapper.ts'

const CANARY = 'CANARY'
/** As the runner has translated them: a process that does so itself takes more time than its test. */
const READER = import.meta.resolve('../../../src/core/read/open-inside.js')
const DISK = import.meta.resolve('../../../src/core/read/disk.js')

t.test('K19 K22: a swap at any moment of the opening gives the secret to nobody', async (t) => {
  const base = fs.realpathSync(t.testdir({ secret: { 'SKILL.md': CANARY, 'a.md': CANARY }, root: {} }))
  const folder = join(base, 'root/demo')
  const swaps: Readonly<Record<string, () => void>> = {
    'the file': () => { fs.rmSync(join(folder, 'docs/a.md')); fs.symlinkSync(join(base, 'secret/a.md'), join(folder, 'docs/a.md')) },
    'the folder on the way': () => { fs.renameSync(join(folder, 'docs'), join(folder, 'away')); fs.symlinkSync(join(base, 'secret'), join(folder, 'docs')) },
    'the skill folder': () => { fs.renameSync(folder, `${folder}-away`); fs.mkdirSync(folder); fs.symlinkSync(join(base, 'secret'), join(folder, 'docs')) },
    'the skill folder with a link': () => {
      fs.renameSync(folder, `${folder}-away`)
      fs.mkdirSync(join(base, 'secret/docs'), { recursive: true })
      fs.writeFileSync(join(base, 'secret/docs/a.md'), CANARY)
      fs.symlinkSync(join(base, 'secret'), folder)
    }
  }
  for (const hasProc of [true, false]) {
    for (const [what, swap] of Object.entries(swaps)) {
      for (let moment = 1; ; moment++) {
        fs.rmSync(join(base, 'root'), { recursive: true })
        fs.mkdirSync(join(folder, 'docs'), { recursive: true })
        fs.writeFileSync(join(folder, 'docs/a.md'), 'public')
        const disk = createFaultyDisk({ hasProc })
        let operations = 0
        disk.intercept = () => { if (++operations === moment) swap() }
        const answer = await readInside(disk, folder, 'docs/a.md')
        if (answer.includes(CANARY)) t.fail(`leaked when ${what} was swapped before operation ${moment}`)
        if (operations < moment) break
      }
      t.pass(`${what}, ${hasProc ? 'with' : 'without'} /proc`)
    }
  }
  t.equal(countOpenBelow(base), 0)
})

t.test('K22: what was removed after it was opened is still that file, and K8 counts for it', async (t) => {
  const folder = fs.realpathSync(t.testdir({ 'a.md': 'text', 'x (deleted)': 'odd', innocent: t.fixture('symlink', '.env'), '.env': 'hidden' }))
  const disk = createFaultyDisk()
  disk.intercept = (operation) => { if (operation === 'readlink') fs.rmSync(join(folder, 'a.md'), { force: true }) }
  t.equal(await readInside(disk, folder, 'a.md'), 'text')
  disk.intercept = (operation) => { if (operation === 'readlink') fs.rmSync(join(folder, '.env'), { force: true }) }
  t.equal(await readInside(disk, folder, 'innocent'), 'refused: not_found')
  disk.intercept = () => {}
  t.equal(await readInside(disk, folder, 'x (deleted)'), 'odd')
})

/** Reads as fast as it can, until it has met both states often enough, and says what it got. */
const READS = `
  import { openInside } from ${JSON.stringify(READER)}
  import { localDisk } from ${JSON.stringify(DISK)}
  const [folder, path] = process.argv.slice(1)
  const disk = localDisk
  const seen = {}
  const deadline = performance.now() + 20_000
  for (let count = 0; (count < 3_000 || Object.keys(seen).length < 2 || seen.public === undefined) && performance.now() < deadline; count++) {
    let answer
    try {
      const file = await openInside({ disk, folder, path })
      try { answer = String(await file.readAll()) } finally { await file.close() }
    } catch (error) { answer = error.refusal ?? String(error) }
    seen[answer] = (seen[answer] ?? 0) + 1
  }
  console.log(JSON.stringify(seen))`

for (const [what, swapped, secret] of [['the file', 'docs/a.md', 'a.md'], ['its folder', 'docs', ''], ['the skill folder', '.', '']] as const) {
  t.test(`K22: a link to outside swapped in for ${what} in a loop gets nothing`, async (t) => {
    const base = fs.realpathSync(t.testdir({ secret: { 'a.md': CANARY, docs: { 'a.md': CANARY } }, root: { demo: { docs: { 'a.md': 'public' } } } }))
    const folder = join(base, 'root/demo')
    fs.symlinkSync(join(base, 'secret', secret), join(base, 'link'))
    const path = join(folder, swapped)
    const stopSwapping = await startSwapper(t, path.replace(/\/$/, ''), join(base, 'aside'), join(base, 'link'))
    const reader = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', READS, folder, 'docs/a.md'], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => { reader.kill('SIGKILL') })
    let output = ''
    reader.stdout.setEncoding('utf8').on('data', (text: string) => { output += text })
    await once(reader, 'close')
    await stopSwapping()
    const seen = JSON.parse(output) as Record<string, number>
    t.comment(output)
    t.notOk(Object.keys(seen).some((answer) => answer.includes(CANARY)), 'no canary')
    t.ok((seen.public ?? 0) > 0, 'the file was read in between')
    t.ok(Object.keys(seen).length > 1, 'and refused in between')
  })
}
