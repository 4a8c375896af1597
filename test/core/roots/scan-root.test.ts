import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { listRoot, type RootFolder, type RootListing } from '../../../src/core/roots/list-root.ts'
import { localDisk, createNetworkDisk, type Disk } from '../../../src/core/read/disk.ts'
import { Signal } from '../../../src/sources/signal.ts'
import { compareCodePoints } from '../../../src/core/shared/text.ts'
import { createFaultyDisk, failing, skill } from '../../helper/skills.ts'

function rootAt (path: string): RootFolder {
  return { name: 'root', path, type: 'project', listed: undefined, prefix: '', linkTargets: [] }
}

async function goodScan (root: RootFolder, disk: Disk = localDisk, before?: RootListing): Promise<RootListing> {
  const listing = await listRoot(disk, root, before)
  if ('state' in listing) throw new Error(listing.state)
  return listing
}

function stateIn (found: Awaited<ReturnType<typeof listRoot>>): string {
  return 'state' in found ? found.state : 'ok'
}

async function namesIn (path: string, disk?: Disk): Promise<readonly string[]> {
  return [...(await goodScan(rootAt(path), disk)).folders.keys()].sort(compareCodePoints)
}

function createRoot (t: Test): string {
  const link = (target: string) => t.fixture('symlink', target)
  return join(t.testdir({
    outside: skill('outside'),
    root: {
      demo: skill('demo'),
      empty: {},
      'a file': 'no skill',
      'SKILL.md': 'no skill',
      '.hidden': skill('hidden'),
      '..data': skill('data'),
      'a..b': {},
      'a\\b': {},
      'new\nline': {},
      'delete\x7f': {},
      'c1\x85': {},
      'trailing. ': {},
      'C:': {},
      "quote'\"": {},
      '\uFFFD': {},
      __proto__x: {},
      constructor: {},
      toString: {},
      'to-demo': link('demo'),
      'to-data': link('..data'),
      'to-nested': link('demo/nested'),
      'to-link': link('to-demo'),
      'out-of-root': link('../outside'),
      'to-etc': link('/etc'),
      'to-root': link('.'),
      'to-parent': link('..'),
      'to-file': link('demo/SKILL.md'),
      'to-git': link('demo/.git'),
      dangling: link('nothing'),
      loop: link('loop')
    }
  }), 'root')
}

for (const [kind, createDisk] of [['a local disk', () => localDisk], ['a network disk', createNetworkDisk]] as const) {
  t.test(`K4: skills are the folders with a safe name, on ${kind}`, async (t) => {
    const root = createRoot(t)
    for (const name of ['demo/nested', 'demo/.git', '__proto__', 'é', 'x'.repeat(255)]) fs.mkdirSync(join(root, name))
    fs.mkdirSync(Buffer.concat([Buffer.from(`${root}/not-utf8-`), Buffer.from([0xff])]))
    execFileSync('mkfifo', [join(root, 'fifo')])
    t.strictSame(await namesIn(root, createDisk()), [
      'C:', '__proto__', '__proto__x', 'constructor', 'demo', 'empty', "quote'\"", 'to-data', 'to-demo', 'to-link', 'to-nested', 'toString',
      'trailing. ', 'x'.repeat(255), 'é', '\uFFFD'
    ])
  })
}

t.test('K4: a name that is not UTF-8 is told from one that holds U+FFFD', async (t) => {
  const root = t.testdir({ plain: {} })
  fs.mkdirSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff])]))
  t.strictSame(await namesIn(root), ['plain'])
  fs.mkdirSync(join(root, '\uFFFD'))
  t.strictSame(await namesIn(root), ['plain', '\uFFFD'])
})

t.test('a skill knows where it is configured, and where it really is', async (t) => {
  const base = t.testdir({ real: { demo: {} }, root: t.fixture('symlink', 'real') })
  fs.symlinkSync('demo', join(base, 'real/alias'))
  const scan = await goodScan(rootAt(join(base, 'root')))
  const realPath = fs.realpathSync(join(base, 'real/demo'))
  t.equal(scan.realPath, fs.realpathSync(join(base, 'real')))
  t.strictSame(scan.folders.get('demo'), { name: 'demo', type: 'project', path: join(base, 'root/demo'), realPath, linked: false })
  t.strictSame(scan.folders.get('alias'), { name: 'alias', type: 'project', path: join(base, 'root/alias'), realPath, linked: true })
})

t.test('K14: the states of a root', async (t) => {
  const base = t.testdir({ file: '', root: {}, dangling: t.fixture('symlink', 'nothing'), loop: t.fixture('symlink', 'loop'), 'to-file': t.fixture('symlink', 'file') })
  const stateOf = async (name: string, disk: Disk = localDisk) => stateIn(await listRoot(disk, rootAt(join(base, name))))
  t.equal(await stateOf('root'), 'ok')
  for (const name of ['nothing', 'nothing/below', 'file', 'file/below', 'dangling', 'loop', 'to-file', 'x'.repeat(300)]) t.equal(await stateOf(name), 'missing', name.slice(0, 20))
  const disk = createFaultyDisk()
  for (const operation of ['stat', 'realpath', 'readdir'] as const) {
    for (const [code, state] of [['EACCES', 'unreadable'], ['EPERM', 'unreadable'], ['ENOENT', 'missing'], ['EIO', 'failed'], ['EMFILE', 'failed'], ['ESTALE', 'failed']] as const) {
      disk.intercept = failing(operation, '', code)
      t.equal(await stateOf('root', disk), state, `${operation}: ${code}`)
    }
  }
})

t.test('K51: a root that is another one during the scan is found out at the next', async (t) => {
  const base = t.testdir({ a: { one: {} }, b: { two: {} }, root: t.fixture('symlink', 'a') })
  const relink = (target: string) => { fs.rmSync(join(base, 'root')); fs.symlinkSync(target, join(base, 'root')) }
  const disk = createFaultyDisk()
  const begun = { realpath: false, stat: false, readdir: false }
  disk.intercept = (operation) => {
    if (operation !== 'realpath' && operation !== 'stat' && operation !== 'readdir') return
    if (!begun[operation]) relink(operation === 'realpath' ? 'b' : 'a')
    begun[operation] = true
  }
  const scan = await goodScan(rootAt(join(base, 'root')), disk)
  const signed = fs.statSync(scan.realPath, { bigint: true }).ino
  t.equal(scan.signature.ino, signed, 'the signature is that of the folder whose names were read')
  t.strictSame([...scan.folders.keys()], ['two'])
})

t.test('K4: what is left out of a root, and why', async (t) => {
  const base = fs.realpathSync(t.testdir({ outside: {}, root: { '.hidden': {}, 'a..b': {}, 'a file': '', 'a..file': '', draft: {}, '.skillignore': 'draft\n' } }))
  const root = join(base, 'root')
  fs.mkdirSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff])]))
  for (const [name, target] of [['out', '../outside'], ['none', 'nothing'], ['unread', 'nothing'], ['to-file', 'a file']] as const) fs.symlinkSync(target, join(root, name))
  const { skipped } = await goodScan(rootAt(root), createFaultyDisk({ intercept: failing('readlink', '/unread', 'EIO') }))
  t.strictSame(skipped.toSorted((a, b) => compareCodePoints(a.name, b.name)), [
    { name: 'a..b', reason: 'unsafe_name' },
    { name: 'draft', reason: 'ignored' },
    { name: 'none', reason: 'nothing', target: 'nothing' },
    { name: 'out', reason: 'outside', target: join(base, 'outside') },
    { name: 'unread', reason: 'nothing' },
    { name: '\uFFFD', reason: 'unsafe_name' }
  ])
})

t.test('K51: what is the same in the next scan is the same object, and what is another is not', async (t) => {
  const base = fs.realpathSync(t.testdir({ a: {}, b: {}, '.skillignore': 'x\n' }))
  fs.symlinkSync('a', join(base, 'link'))
  fs.symlinkSync('a', join(base, 'turned'))
  fs.symlinkSync('a', join(base, 'made'))
  const root = rootAt(base)
  const first = await goodScan(root)
  const scan = async (before: RootListing) => await goodScan(root, localDisk, before)
  const same = await scan(first)
  t.equal(same.folders, first.folders)

  fs.rmSync(join(base, 'turned'))
  fs.symlinkSync('b', join(base, 'turned'))
  fs.rmSync(join(base, 'made'))
  fs.mkdirSync(join(base, 'made'))
  fs.rmdirSync(join(base, 'b'))
  fs.writeFileSync(join(base, '.skillignore'), 'x\n')
  const second = await scan(first)
  for (const name of ['made', 'turned']) t.not(second.folders.get(name), first.folders.get(name), name)
  t.notOk(second.folders.has('b'))
  for (const name of ['a', 'link']) t.equal(second.folders.get(name), first.folders.get(name), name)
  t.match(second.folders.get('made'), { realPath: join(base, 'made'), linked: false })
  t.equal(second.ignoreFile?.rules, first.ignoreFile?.rules, 'rules that were written again')
  t.equal(second.ignoreFile?.signature?.ctimeNs, fs.statSync(join(base, '.skillignore'), { bigint: true }).ctimeNs)

  fs.writeFileSync(join(base, '.skillignore'), 'y\n')
  const third = await scan(second)
  for (const [name, { rootRules }] of third.folders) t.equal(rootRules, third.ignoreFile?.rules, name)
})

t.test('K51: a scan counts as long as root and ignore file were old enough when it began', async (t) => {
  const base = t.testdir({ '.skillignore': '' })
  const [old, young] = [createFaultyDisk({ ageMs: 60_000 }), createFaultyDisk({ ageMs: -60_000 })]
  const isIgnoreFile = (path: string) => path.endsWith('.skillignore')
  for (const [disk, isTrustworthy] of [
    [old, true],
    [{ ...old, stat: (path: string) => (isIgnoreFile(path) ? young : old).stat(path) }, false],
    [{ ...old, stat: (path: string) => (isIgnoreFile(path) ? old : young).stat(path) }, false]
  ] as const) t.match(await goodScan(rootAt(base), disk), { isTrustworthy })
})

t.test('K85: the states of a root that somebody else lists, and the folders in it', async (t) => {
  const base = fs.realpathSync(t.testdir({ file: '', root: { one: {}, two: {} } }))
  const path = join(base, 'root')
  const listed = (realPath: string, isFixed = true) => ({ folders: new Map([['one', { path: join(path, 'one'), realPath }]]), changed: new Signal<void>(), isFixed })
  const stateOf = async (folder: string, listing: RootFolder['listed']) => stateIn(await listRoot(localDisk, { ...rootAt(folder), listed: listing }))
  const none = { folders: undefined, changed: new Signal<void>() }
  t.equal(await stateOf(path, { ...none, isFixed: true }), 'waiting')
  t.equal(await stateOf(path, { ...none, isFixed: false }), 'missing')
  for (const isFixed of [true, false]) for (const name of ['file', 'nothing']) t.equal(await stateOf(join(base, name), listed(path, isFixed)), 'missing', name)

  const root = { ...rootAt(path), listed: listed(join(path, 'one')) }
  const first = await goodScan(root)
  t.match(first, { isTrustworthy: true, isSkill: false })
  t.strictSame([...first.folders.values()], [{ name: 'one', type: 'project', path: join(path, 'one'), realPath: join(path, 'one'), linked: false }])
  t.equal((await goodScan(root, localDisk, first)).folders, first.folders)
  const second = await goodScan({ ...root, listed: listed(join(path, 'two')) }, localDisk, first)
  t.equal(second.folders.get('one')?.realPath, join(path, 'two'))
})
