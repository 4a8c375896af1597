import { mkdirSync, realpathSync, renameSync, rmdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type NetworkMounts, readNetworkMounts } from '../../../../src/core/disk/network/network-mounts.ts'
import { errorCode } from '../../../../src/core/shared/system-errors.ts'

const MOUNTS = `22 1 0:21 / / rw,relatime shared:1 - ext4 /dev/root rw
23 22 0:22 / /proc rw,nosuid - proc proc rw
40 22 0:40 / /srv/far rw,relatime shared:9 master:2 - nfs4 server:/share rw,vers=4.2
41 40 8:1 / /srv/far/near rw - ext4 /dev/sda1 rw
42 22 0:42 / /srv/skills/of\\040others rw - fuse.sshfs them: rw
43 22 0:43 / /mnt/twice rw - cifs //server/share rw
44 22 8:2 / /mnt/twice rw - xfs /dev/sda2 rw
45 22 0:45 / /mnt/desktop rw - virtiofs share rw
`

/** Whether a path that is there counts as missing, since it leads to a network disk. */
function reachesNothing (mounts: NetworkMounts, path: string): boolean {
  try {
    return mounts.reach(path, () => false)
  } catch (error) {
    return errorCode(error) === 'ENOENT'
  }
}

t.test('a path on a network disk, by the deepest mount that it lies in', async (t) => {
  const expected: Readonly<Record<string, boolean>> = {
    '/srv/far': true,
    '/srv/far/skills': true,
    '/srv/farther': false,
    '/srv/far/near/skills': false,
    '/mnt/desktop/skills': true,
    '/home': false
  }
  for (const [path, isNetwork] of Object.entries(expected)) t.equal(readNetworkMounts(MOUNTS).touches(path), isNetwork, path)
})

t.test('a path with a network disk somewhere below it', async (t) => {
  for (const path of ['/srv', '/srv/skills', '/srv/skills/of others', '/']) t.equal(readNetworkMounts(MOUNTS).touches(path), true, path)
})

t.test('of several mounts on one folder the last one counts for what lies in it', async (t) => {
  t.equal(readNetworkMounts(MOUNTS).touches('/mnt/twice/skills'), false)
})

t.test('what cannot be told counts as local', async (t) => {
  for (const mounts of ['', 'nonsense\n', '1 2 3 4\n']) t.equal(readNetworkMounts(mounts).touches('/srv'), false)
  t.type(readNetworkMounts().touches('/'), 'boolean')
})

t.test('a path whose links lead to a network disk, without a call to that disk', async (t) => {
  const base = realpathSync(t.testdir({
    far: {}, local: { skills: {} }, link: t.fixture('symlink', 'second'), second: t.fixture('symlink', 'far/skills'), above: t.fixture('symlink', '.'), near: t.fixture('symlink', 'local/skills')
  }))
  const mounts = readNetworkMounts(`${MOUNTS}46 22 0:46 / ${join(base, 'far')} rw - nfs4 server:/share rw\n`)
  for (const path of ['link', 'link/below', 'second', 'above/far/skills']) t.equal(mounts.touches(join(base, path)), true, path)
  for (const path of ['near', 'local', 'local/skills', 'missing', 'above/local']) t.equal(mounts.touches(join(base, path)), false, path)
})

t.test('a path that leads to a network disk apart from some folders, and where', async (t) => {
  const base = realpathSync(t.testdir({
    own: {}, dead: {}, local: { 'a.md': '', away: t.fixture('symlink', '../dead/x/../y'), near: t.fixture('symlink', '../own/skills'), file: t.fixture('symlink', 'a.md') }, link: t.fixture('symlink', 'local/away')
  }))
  const [own, dead, local] = ['own', 'dead', 'local'].map((name) => join(base, name)) as [string, string, string]
  const mounts = readNetworkMounts(['own', 'dead'].map((name) => `46 22 0:46 / ${join(base, name)} rw - nfs4 server:/share rw\n`).join(''))
  const foreign = mounts.survey([local, own]).foreign
  for (const path of ['dead', 'local/away', 'link', 'local/away/']) t.equal(foreign?.endOf(join(base, path)), path === 'dead' ? dead : join(dead, 'y'), path)
  t.equal(foreign?.endOf(join(base, 'link/below')), join(dead, 'y/below'))
  for (const path of ['', 'local', 'local/a.md', 'local/near', 'local/file', 'own/a', 'local/missing']) t.equal(foreign?.endOf(join(base, path)), undefined, path)
  for (const [path, end] of [['link', undefined], ['local/away', undefined], ['link/', join(dead, 'y')], ['link/below', join(dead, 'y/below')], ['dead', dead]] as const) {
    t.equal(foreign?.endOf(`${base}/${path}`, false), end, `${path}, itself not followed`)
  }
  t.equal(mounts.survey([base]).foreign, undefined, 'a folder with both')
  t.equal(mounts.survey([own, join(local, 'away')]).foreign, undefined, 'a folder whose path leads there')
  t.equal(readNetworkMounts('22 1 0:21 / / rw - ext4 /dev/root rw\n').survey([]).foreign, undefined)
})

t.test('folders in a mount below a network disk are not foreign, and links in them still are', async (t) => {
  const base = realpathSync(t.testdir({
    outer: { inner: { skills: { out: t.fixture('symlink', '../../../dead/x'), up: t.fixture('symlink', '../../x'), on: t.fixture('symlink', 'a'), a: {} } }, other: {}, to: t.fixture('symlink', 'inner/skills') }, dead: {}
  }))
  for (const type of ['nfs4', 'ext4']) {
    const table = ([['outer', 'nfs4'], ['outer/inner', type], ['outer/other', 'nfs4'], ['dead', 'nfs4']] as const).map(([name, type]) => `46 22 0:46 / ${join(base, name)} rw - ${type} server:/share rw\n`)
    const foreign = readNetworkMounts(table.join('')).survey([join(base, 'outer/inner/skills')]).foreign
    for (const path of ['outer/inner/skills', 'outer/inner/skills/a', 'outer/inner/skills/on']) t.equal(foreign?.endOf(join(base, path)), undefined, `${path} in ${type}`)
    for (const path of ['dead', 'outer/x', 'outer/other', 'outer/other/x']) t.equal(foreign?.endOf(join(base, path)), join(base, path), `${path} beside ${type}`)
  }
  const local = readNetworkMounts([`46 22 0:46 / ${join(base, 'outer')} rw - nfs4 server:/share rw\n`, `46 22 8:1 / ${join(base, 'outer/inner')} rw - ext4 /dev/sda rw\n`, `46 22 0:46 / ${join(base, 'dead')} rw - nfs4 server:/share rw\n`].join(''))
  const foreign = local.survey([join(base, 'outer/inner/skills')]).foreign
  t.equal(foreign?.endOf(join(base, 'outer/inner/skills/out')), join(base, 'dead/x'))
  t.equal(foreign?.endOf(join(base, 'outer/inner/skills/up')), join(base, 'outer/x'))
  for (const [path, leads] of [['outer/inner/skills', false], ['outer/inner/skills/a', false], ['outer/inner/skills/out', true], ['outer/inner/skills/up', true], ['outer/other', true], ['dead', true]] as const) {
    t.equal(reachesNothing(local, join(base, path)), leads, path)
  }
  t.equal(local.touches(join(base, 'outer/inner/skills/out')), true)
  t.equal(local.survey([join(base, 'outer/to')]).foreign?.endOf(join(base, 'outer/inner/skills/a')), undefined)
})

t.test('file systems that wait for another machine or a process, by their names in the kernel', async (t) => {
  const isNetwork = (type: string, point = '/srv'): boolean => readNetworkMounts(`46 22 0:46 / ${point} rw - ${type} source rw\n`).has(`${point}/skills`)
  for (const type of ['nfs', 'nfs4', 'cifs', 'smb3', '9p', 'fuse', 'fuse.glusterfs', 'fuse.mfs', 'fuseblk', 'virtiofs', 'fakeowner', 'vboxsf', 'autofs', 'ceph', 'afs', 'coda', 'lustre', 'beegfs', 'gpfs', 'pvfs2', 'gfs2', 'ocfs2']) {
    t.equal(isNetwork(type), true, type)
  }
  for (const type of ['ext4', 'xfs', 'btrfs', 'zfs', 'overlay', 'tmpfs', 'nfsd', 'fusectl']) t.equal(isNetwork(type), false, type)
  t.equal(isNetwork('autofs', '/proc/sys/fs/binfmt_misc'), false, 'of each machine with systemd')
})

t.test('a folder that is mounted when it is first asked for', async (t) => {
  const mounts = readNetworkMounts('46 22 0:46 / /home rw - autofs auto.home rw\n47 46 0:47 / /home/one rw - nfs4 server:/one rw\n')
  t.equal(mounts.touches('/home/two/skills'), true)
  const foreign = mounts.survey(['/home/one/skills']).foreign
  t.equal(foreign?.endOf('/home/one/skills/a'), undefined)
  t.equal(foreign?.endOf('/home/two/skills'), '/home/two/skills')
})

t.test('a link that leads through folders whose path is too long to ask for counts as one that leads away', async (t) => {
  const base = realpathSync(t.testdir({ dead: {}, skill: {} }))
  const names = Array.from({ length: 16 }, () => 'd'.repeat(250))
  // From the deepest one upwards: no single path is too long.
  mkdirSync(join(base, 'deep'))
  symlinkSync(join(base, 'dead/x'), join(base, 'deep', 'l'.repeat(60)))
  for (const name of names) {
    mkdirSync(join(base, 'next'))
    renameSync(join(base, 'deep'), join(base, 'next', name))
    renameSync(join(base, 'next'), join(base, 'deep'))
  }
  symlinkSync(['..', 'deep', ...names, 'l'.repeat(60)].join('/'), join(base, 'skill/SKILL.md'))
  t.teardown(() => {
    for (const name of names) {
      renameSync(join(base, 'deep', name), join(base, 'next'))
      rmdirSync(join(base, 'deep'))
      renameSync(join(base, 'next'), join(base, 'deep'))
    }
  })
  const mounts = readNetworkMounts(`46 22 0:46 / ${join(base, 'dead')} rw - nfs4 server:/share rw\n`)
  const foreign = mounts.survey([join(base, 'skill')]).foreign
  t.type(foreign?.endOf(join(base, 'skill/SKILL.md')), 'string')
  t.equal(reachesNothing(mounts, join(base, 'skill/SKILL.md')), true)
  t.equal(foreign?.endOf(join(base, 'skill', ...names, 'x'.repeat(90))), undefined, 'which the kernel refuses')
})
