import { execFileSync } from 'node:child_process'
import fs, { closeSync, constants, fstatSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { createLocalDisk, type Disk, type FolderReader } from '../../../../src/core/disk/disk.ts'
import { errorCode } from '../../../../src/core/shared/system-errors.ts'
import { createLocalDiskApart } from '../../../../src/core/disk/network/local-disk.ts'
import { readNetworkMounts } from '../../../../src/core/disk/network/network-mounts.ts'
import { outcome } from '../../../helper/skills.ts'

const mountsAt = (path: string) => readNetworkMounts(`46 22 0:46 / ${path} rw - nfs4 server:/share rw\n`)

t.test('K53: what leads to a foreign disk is refused by each call', async (t) => {
  const base = realpathSync(t.testdir({ dead: { 'a.md': '' }, skill: { link: t.fixture('symlink', '../dead'), file: t.fixture('symlink', 'link/a.md') } }))
  const foreign = mountsAt(join(base, 'dead')).survey([join(base, 'skill')]).foreign
  const disk = createLocalDiskApart(() => foreign)
  for (const path of ['skill/link', 'skill/file', 'skill/link/a.md', 'dead/a.md']) {
    const refused: Array<(path: string) => unknown> = [disk.stat, disk.readdir, disk.readdirBytes, disk.opendir, (path: string) => disk.open(path, constants.O_RDONLY)]
    if (path.endsWith('/a.md')) refused.push(disk.lstat, disk.readlink)
    for (const call of refused) t.equal(String(await outcome(() => call(join(base, path)))), 'RefusedError: outside', path)
  }
  t.equal(await disk.realpath(join(base, 'skill/file')), join(base, 'dead/a.md'))
  t.equal(await disk.readlink(join(base, 'skill/file')), 'link/a.md')
})

t.test('K53: beside a network disk each path leads where it leads without', async (t) => {
  const base = realpathSync(t.testdir({
    folder: { 'a.md': 'a', inner: { 'b.md': 'b' }, up: t.fixture('symlink', '..'), 'to-file': t.fixture('symlink', 'a.md') },
    'a.md': 'top',
    inner: t.fixture('symlink', 'folder/inner'),
    slash: t.fixture('symlink', 'folder/'),
    'file-slash': t.fixture('symlink', 'a.md/'),
    loop: t.fixture('symlink', 'loop'),
    missing: t.fixture('symlink', 'nothing'),
    'up-down': t.fixture('symlink', 'inner/../inner/b.md')
  }))
  execFileSync('mkfifo', [join(base, 'fifo')])
  const foreign = mountsAt('/elsewhere').survey([base]).foreign
  const [plain, apart] = [createLocalDisk(), createLocalDiskApart(() => foreign)]
  const segment = fc.constantFrom('folder', 'inner', 'a.md', 'b.md', 'up', 'to-file', 'slash', 'file-slash', 'loop', 'missing', 'up-down', 'fifo', 'none', '.', '..', '', 'x'.repeat(256))
  const calls: ReadonlyArray<(disk: Disk, path: string) => unknown> = [
    (disk, path) => orMissing(async () => (await disk.stat(path))?.ino),
    (disk, path) => orMissing(async () => (await disk.lstat(path))?.ino),
    (disk, path) => disk.realpath(path),
    (disk, path) => disk.readlink(path),
    async (disk, path) => (await disk.readdir(path)).map(({ name }) => name).sort(),
    async (disk, path) => (await disk.readdirBytes(path)).map(String).sort(),
    async (disk, path) => await namesIn(await disk.opendir(path)),
    (disk, path) => inodeOf(disk, path, constants.O_RDONLY | constants.O_NONBLOCK),
    (disk, path) => inodeOf(disk, path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  ]
  await fc.assert(fc.asyncProperty(fc.array(segment, { maxLength: 6 }), fc.constantFrom(...calls), async (segments, call) => {
    const path = [base, ...segments].join('/')
    const [expected, found] = [await answerOf(() => call(plain, path)), await answerOf(() => call(apart, path))]
    return t.strictSame(found, expected, path)
  }), { numRuns: 2000 })
})

t.test('K53: a folder that is read in pieces beside a network disk stays at the path that Node asks for types by, until it is closed', async (t) => {
  const base = realpathSync(t.testdir({ 'a.md': '' }))
  const foreign = mountsAt('/elsewhere').survey([base]).foreign
  const opened = t.capture(fs, 'opendirSync', fs.opendirSync)
  const folder = await createLocalDiskApart(() => foreign).opendir(base)
  const asked = String(opened()[0]?.args[0])
  t.equal(realpathSync(asked), base)
  t.strictSame(await namesIn(folder), ['a.md'])
  t.not(await outcome(() => realpathSync(asked)), base)
})

async function namesIn (folder: FolderReader): Promise<readonly string[]> {
  try {
    return (await folder.read()).map(({ name }) => name).sort()
  } finally {
    await folder.close()
  }
}

async function inodeOf (disk: Disk, path: string, flags: number): Promise<bigint> {
  const descriptor = await disk.open(path, flags)
  try {
    return fstatSync(descriptor, { bigint: true }).ino
  } finally {
    closeSync(descriptor)
  }
}

/** Node 20 says where a part of the path is no folder, later ones say nothing. */
async function orMissing (call: () => Promise<unknown>): Promise<unknown> {
  const answer = await answerOf(call)
  return answer === 'ENOTDIR' ? undefined : answer
}

/** What a call gives, or the code of its error. */
async function answerOf (call: () => unknown): Promise<unknown> {
  try {
    return await call()
  } catch (error) {
    return errorCode(error)
  }
}
