import { constants, realpathSync, symlinkSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { avoidForeign } from '../../../../src/core/disk/network/avoid-foreign.ts'
import { type ForeignDisks, readNetworkMounts } from '../../../../src/core/disk/network/network-mounts.ts'
import { openInside } from '../../../../src/core/files/open-inside.ts'
import { createFaultyDisk, outcome } from '../../../helper/skills.ts'

const REFUSED = 'RefusedError: outside'

t.test('no call touches a foreign disk, and each says that the path leads out', async (t) => {
  const base = realpathSync(t.testdir({ dead: { 'a.md': '' }, skill: { 'a.md': 'a', link: t.fixture('symlink', '../dead') } }))
  const mounts = readNetworkMounts(`46 22 0:46 / ${join(base, 'dead')} rw - nfs4 server:/share rw\n`)
  const disk = createFaultyDisk()
  const asked: string[] = []
  disk.intercept = (operation, path) => { asked.push(`${operation} ${path}`) }
  let foreign: ForeignDisks | undefined = mounts.survey([join(base, 'skill')]).foreign
  const avoiding = avoidForeign(disk, () => foreign)
  const inside = join(base, 'skill/link/a.md')
  for (const call of [
    () => avoiding.stat(inside), () => avoiding.lstat(inside), () => avoiding.readlink(inside), () => avoiding.open(inside, constants.O_RDONLY),
    () => avoiding.stat(join(base, 'skill/link')), () => avoiding.readdir(join(base, 'skill/link')), () => avoiding.readdirBytes(join(base, 'skill/link')), () => avoiding.opendir(join(base, 'skill/link'))
  ]) t.equal(String(await outcome(call)), REFUSED)
  t.equal(await avoiding.realpath(inside), join(base, 'dead/a.md'))
  t.strictSame(asked, [])

  t.equal((await avoiding.lstat(join(base, 'skill/link')))?.isSymbolicLink(), true)
  t.equal(await avoiding.readlink(join(base, 'skill/link')), '../dead')
  t.equal(String(await outcome(() => openInside(avoiding, join(base, 'skill'), 'link/a.md'))), REFUSED)
  t.equal((await (await openInside(avoiding, join(base, 'skill'), 'a.md')).readAll(10)).bytes.toString(), 'a')
  t.notOk(asked.some((call) => call.includes('dead')), asked.join('\n'))

  foreign = undefined
  unlinkSync(join(base, 'skill/link'))
  symlinkSync('a.md', join(base, 'skill/link'))
  t.equal(await avoiding.realpath(join(base, 'skill/link')), join(base, 'skill/a.md'), 'as ever, once there is no such disk')
})
