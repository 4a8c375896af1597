import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { localDisk } from '../../../src/core/read/disk.ts'
import { countOpenBelow, createFaultyDisk } from '../../helper/skills.ts'
import { readInside } from '../../helper/open-inside.ts'
import { startSwapper } from '../../helper/swapper.ts'

const CANARY = 'CANARY'
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

for (const [what, swapped, secret] of [['the file', 'docs/a.md', 'a.md'], ['its folder', 'docs', ''], ['the skill folder', '.', '']] as const) {
  t.test(`K22: a link to outside swapped in for ${what} in a loop gets nothing`, async (t) => {
    const base = fs.realpathSync(t.testdir({ secret: { 'a.md': CANARY, docs: { 'a.md': CANARY } }, root: { demo: { docs: { 'a.md': 'public' } } } }))
    const folder = join(base, 'root/demo')
    fs.symlinkSync(join(base, 'secret', secret), join(base, 'link'))
    const path = join(folder, swapped)
    const stopSwapping = await startSwapper(t, path.replace(/\/$/, ''), join(base, 'aside'), join(base, 'link'))
    const seen: Record<string, number> = {}
    const deadline = performance.now() + 20_000
    const hasSeenBoth = () => seen['public'] !== undefined && Object.keys(seen).length > 1
    for (let count = 0; (count < 3_000 || !hasSeenBoth()) && performance.now() < deadline; count++) {
      const answer = await readInside(localDisk, folder, 'docs/a.md')
      seen[answer] = (seen[answer] ?? 0) + 1
    }
    await stopSwapping()
    t.notOk(Object.keys(seen).some((answer) => answer.includes(CANARY)), 'no canary')
    t.ok(hasSeenBoth(), `read in between, and refused in between: ${JSON.stringify(seen)}`)
  })
}
