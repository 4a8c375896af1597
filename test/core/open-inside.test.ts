import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createNetworkDisk, type Disk, localDisk } from '../../src/core/read/disk.ts'
import { openInside } from '../../src/core/read/open-inside.ts'
import { RefusedError } from '../../src/core/read/refused.ts'
import { countOpenBelow, createFaultyDisk, failing, osError } from '../helper/skills.ts'

const LIMIT = 1_000
const CANARY = 'CANARY'

/** The kinds of disk: all give the same answers. */
const DISKS: Readonly<Record<string, () => Disk>> = {
  'a local disk': () => localDisk,
  'a network disk': createNetworkDisk,
  'a disk without /proc': () => createFaultyDisk({ hasProc: false })
}

/** What reading a file came to: its text, or the refusal. */
async function readInside (disk: Disk, folder: string, path: string, limit = LIMIT): Promise<string> {
  try {
    const file = await openInside({ disk, folder, path }, limit)
    try {
      return (await file.readAll()).toString()
    } finally {
      await file.close()
    }
  } catch (error) {
    if (error instanceof RefusedError) return `refused: ${error.refusal}`
    throw error
  }
}

/** A socket's path has at most 107 bytes: a short link leads to the folder. */
async function createSocket (t: Test, folder: string): Promise<void> {
  const short = fs.mkdtempSync(join(tmpdir(), 'sock'))
  fs.symlinkSync(folder, join(short, 'l'))
  const server = net.createServer().listen(join(short, 'l/socket'))
  t.teardown(() => {
    server.close()
    fs.rmSync(short, { recursive: true })
  })
  await once(server, 'listening')
}

/** A skill with all that may lie in one, beside things that no reader of it may see. */
function createLayout (t: Test): string {
  const link = (target: string) => t.fixture('symlink', target)
  const base = t.testdir({
    secret: CANARY,
    'outside-folder': { secret: CANARY },
    demo2: { secret: CANARY },
    demo: {
      'SKILL.md': 'main',
      docs: { 'a.md': 'a', deep: { 'b.md': 'b' } },
      '.git': { config: 'hidden' },
      '.env': 'hidden',
      envs: { '.env': 'hidden', sub: { '.hg': { x: 'hidden' } } },
      '.github': { 'x.yml': 'shown' },
      '.env.example': 'shown',
      'to-file': link('docs/a.md'),
      'to-folder': link('docs'),
      'to-chain': link('to-folder/deep/../../to-file'),
      'to-itself': link('.'),
      'out-file': link('../secret'),
      'out-absolute': link('/etc/passwd'),
      'out-folder': link('../outside-folder'),
      'out-parent': link('..'),
      'out-root': link('/'),
      'out-sibling': link('../demo2'),
      'out-chain': link('to-folder/../out-file'),
      'out-dangling': link('../nothing'),
      dangling: link('nothing'),
      loop: link('loop2'),
      loop2: link('loop'),
      'to-git': link('.git/config'),
      'to-env': link('.env'),
      'to-git-folder': link('.git')
    }
  })
  fs.symlinkSync(join(base, 'demo/docs/a.md'), join(base, 'demo/to-absolute-inside'))
  return fs.realpathSync(join(base, 'demo'))
}

const LAYOUT: Readonly<Record<string, string>> = {
  'SKILL.md': 'main',
  'docs/deep/b.md': 'b',
  'to-file': 'a',
  'to-folder/a.md': 'a',
  'to-chain': 'a',
  'to-absolute-inside': 'a',
  'to-itself/to-itself/SKILL.md': 'main',
  '.github/x.yml': 'shown',
  '.env.example': 'shown',
  'out-file': 'refused: outside',
  'out-absolute': 'refused: outside',
  'out-folder': 'refused: outside',
  'out-folder/secret': 'refused: outside',
  'out-parent/secret': 'refused: outside',
  'out-parent/demo/SKILL.md': 'main',
  'out-root/etc/passwd': 'refused: outside',
  'out-sibling/secret': 'refused: outside',
  'out-chain': 'refused: outside',
  'out-dangling': 'refused: not_found',
  'out-dangling/x': 'refused: not_found',
  'out-folder/nothing': 'refused: outside',
  'out-folder/nothing/x': 'refused: outside',
  'out-folder/secret/x': 'refused: outside',
  'out-folder/secret/': 'refused: outside',
  'out-file/x': 'refused: outside',
  'out-parent/demo/nothing': 'refused: not_found',
  'out-chain/x': 'refused: outside',
  [`out-folder/${'x'.repeat(256)}`]: 'refused: outside',
  'to-folder/nothing': 'refused: not_found',
  'to-file/x': 'refused: not_found',
  dangling: 'refused: not_found',
  loop: 'refused: not_found',
  nothing: 'refused: not_found',
  'nothing/x': 'refused: not_found',
  'SKILL.md/': 'refused: not_found',
  'SKILL.md/x': 'refused: not_found',
  [`docs/${'x'.repeat(256)}`]: 'refused: not_found',
  [`docs/${'x/'.repeat(2_500)}x`]: 'refused: not_found',
  'a\0b': 'refused: not_found',
  '.': 'refused: is_directory',
  docs: 'refused: is_directory',
  'docs/': 'refused: is_directory',
  'to-folder': 'refused: is_directory',
  'to-itself': 'refused: is_directory',
  '.git/config': 'refused: not_found',
  '.git': 'refused: not_found',
  'envs/sub/.hg/x': 'refused: not_found',
  '.env': 'refused: not_found',
  'envs/.env': 'refused: not_found',
  'to-git': 'refused: not_found',
  'to-env': 'refused: not_found',
  'to-git-folder/config': 'refused: not_found'
}

for (const [kind, createDisk] of Object.entries(DISKS)) {
  t.test(`K8 K18 K19: paths and links in a skill on ${kind}`, async (t) => {
    const folder = createLayout(t)
    const disk = createDisk()
    for (const [path, expected] of Object.entries(LAYOUT)) {
      t.equal(await readInside(disk, folder, path), expected, path.slice(0, 40))
    }
  })

  t.test(`K22: a FIFO, a socket, a device is refused at once on ${kind}`, async (t) => {
    const folder = fs.realpathSync(t.testdir({ null: t.fixture('symlink', '/dev/null') }))
    execFileSync('mkfifo', [join(folder, 'fifo')])
    await createSocket(t, folder)
    const disk = createDisk()
    t.equal(await readInside(disk, folder, 'fifo'), 'refused: not_regular')
    t.equal(await readInside(disk, folder, 'socket'), 'refused: not_regular')
    t.equal(await readInside(disk, folder, 'null'), 'refused: outside')
    if (spawnSync('mknod', [join(folder, 'zero'), 'c', '1', '5']).status === 0) {
      t.equal(await readInside(disk, folder, 'zero'), 'refused: not_regular', 'a device node')
    }
  })
}

t.test('K22: what is not a regular file is never opened for reading', async (t) => {
  const folder = fs.realpathSync(t.testdir())
  execFileSync('mkfifo', [join(folder, 'fifo')])
  const disk = createFaultyDisk()
  t.equal(await readInside(disk, folder, 'fifo'), 'refused: not_regular')
  t.equal(disk.calls.get('open'), 1, 'only its name')
})

t.test('K18: each error of the operating system has one meaning, its text none', async (t) => {
  const folder = fs.realpathSync(t.testdir({ file: 'text' }))
  const meanings = {
    ENOENT: 'not_found',
    ENOTDIR: 'not_found',
    ENAMETOOLONG: 'not_found',
    ELOOP: 'not_found',
    EACCES: 'permission_denied',
    EPERM: 'permission_denied',
    EISDIR: 'is_directory',
    ENXIO: 'not_regular',
    ENODEV: 'not_regular',
    EIO: 'io_error',
    ESTALE: 'io_error',
    EMFILE: 'io_error',
    EWHATEVER: 'io_error'
  }
  for (const hasProc of [true, false]) {
    const disk = createFaultyDisk({ hasProc })
    for (const [code, meaning] of Object.entries(meanings)) {
      for (const operation of ['open', 'fstat', 'read'] as const) {
        disk.intercept = failing(operation, '', code)
        t.equal(await readInside(disk, folder, 'file'), `refused: ${meaning}`, `${code} from ${operation}`)
      }
    }
    disk.intercept = () => { throw new Error('not of the system') }
    t.equal(await readInside(disk, folder, 'file'), 'refused: io_error')
  }
  t.equal(countOpenBelow(folder), 0)
})

t.test('K19: a permission that is missing behind a link tells nothing about the outside', async (t) => {
  const folder = createLayout(t)
  const disk = createFaultyDisk()
  disk.intercept = (operation, path) => {
    if (operation === 'open') throw osError('EACCES')
    if (operation === 'realpath' && path.includes('out-root')) throw osError('EACCES')
  }
  t.equal(await readInside(disk, folder, 'out-root/root/file'), 'refused: outside')
  t.equal(await readInside(disk, folder, 'out-file'), 'refused: outside')
  t.equal(await readInside(disk, folder, 'SKILL.md'), 'refused: permission_denied')
  t.equal(await readInside(disk, folder, 'docs/a.md'), 'refused: permission_denied')
  t.equal(await readInside(disk, folder, 'to-file'), 'refused: permission_denied',
    'a link to a file of the same skill is not outside')
  disk.intercept = (operation) => { if (operation !== 'close') throw osError('EACCES') }
  t.equal(await readInside(disk, folder, 'docs/a.md'), 'refused: permission_denied', 'nor what nobody may look at')
})

t.test('K21 K22: the limit, to the byte, and what is larger is not read at all', async (t) => {
  const folder = fs.realpathSync(
    t.testdir({ exact: 'x'.repeat(LIMIT), empty: '', more: 'x'.repeat(LIMIT + 1), sparse: '' }))
  fs.truncateSync(join(folder, 'sparse'), 10 * 1_024 ** 3)
  const disk = createFaultyDisk()
  t.equal((await readInside(disk, folder, 'exact')).length, LIMIT)
  t.equal(await readInside(disk, folder, 'empty'), '')
  for (const [path, size] of [['more', BigInt(LIMIT + 1)], ['sparse', 10n * 1_024n ** 3n]] as const) {
    const refused = openInside({ disk, folder, path }, LIMIT).catch((error: unknown) => error)
    t.match(await refused, { refusal: 'too_large', size })
  }
  t.equal(disk.calls.get('read'), 1)
})

t.test('K22 K53: a file that changes while it is read is refused as changed, after one reading', async (t) => {
  const folder = fs.realpathSync(t.testdir({ file: 'old text' }))
  const disk = createFaultyDisk()
  const changes: Array<(path: string) => void> = [
    (path) => { fs.writeFileSync(path, 'new text') },
    (path) => { fs.truncateSync(path, 3) },
    (path) => { fs.appendFileSync(path, 'x'.repeat(2 * LIMIT)) }
  ]
  for (const change of changes) {
    disk.calls.clear()
    disk.intercept = (operation) => { if (operation === 'read') change(join(folder, 'file')) }
    t.equal(await readInside(disk, folder, 'file'), 'refused: changed')
    t.ok((disk.calls.get('read') ?? 0) < 4)
    disk.intercept = () => {}
    fs.writeFileSync(join(folder, 'file'), 'old text')
  }
})

t.test('K19 K22: a swap at any moment of the opening gives the secret to nobody', async (t) => {
  const base = fs.realpathSync(t.testdir({ secret: { 'SKILL.md': CANARY, 'a.md': CANARY }, root: {} }))
  const folder = join(base, 'root/demo')
  const swaps: Readonly<Record<string, () => void>> = {
    'the file': () => {
      fs.rmSync(join(folder, 'docs/a.md')); fs.symlinkSync(join(base, 'secret/a.md'),
        join(folder, 'docs/a.md'))
    },
    'the folder on the way': () => {
      fs.renameSync(join(folder, 'docs'),
        join(folder, 'away')); fs.symlinkSync(join(base, 'secret'), join(folder, 'docs'))
    },
    'the skill folder': () => {
      fs.renameSync(folder,
      `${folder}-away`); fs.mkdirSync(folder); fs.symlinkSync(join(base, 'secret'), join(folder, 'docs'))
    },
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
        if (operations >= moment) continue
        t.ok(moment > 3, `${what}, ${hasProc ? 'with' : 'without'} /proc: ${moment} moments`)
        break
      }
    }
  }
  t.equal(countOpenBelow(base), 0)
})

t.test('K22: what was removed after it was opened is still that file, and K8 counts for it', async (t) => {
  const folder = fs.realpathSync(
    t.testdir({ 'a.md': 'text', 'x (deleted)': 'odd', innocent: t.fixture('symlink', '.env'), '.env': 'hidden' }))
  const disk = createFaultyDisk()
  disk.intercept = (operation) => { if (operation === 'readlink') fs.rmSync(join(folder, 'a.md'), { force: true }) }
  t.equal(await readInside(disk, folder, 'a.md'), 'text')
  disk.intercept = (operation) => { if (operation === 'readlink') fs.rmSync(join(folder, '.env'), { force: true }) }
  t.equal(await readInside(disk, folder, 'innocent'), 'refused: not_found')
  disk.intercept = () => {}
  t.equal(await readInside(disk, folder, 'x (deleted)'), 'odd')
})
