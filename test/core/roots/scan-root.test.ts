import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { scanRoot, type RootFolder } from '../../../src/core/roots/scan-root.ts'
import { createLocalDisk, createNetworkDisk, type Disk } from '../../../src/core/disk/disk.ts'
import { compareCodePoints } from '../../../src/core/ground/text.ts'
import { createFaultyDisk, failing, skill } from '../../helper/skills.ts'

function rootAt (path: string): RootFolder {
  return { name: 'root', path, type: 'project', listed: undefined, linkTargets: [] }
}

async function namesIn (path: string, disk: Disk = createLocalDisk()): Promise<readonly string[]> {
  const scan = await scanRoot(disk, rootAt(path))
  if (scan.state !== 'ok') throw new Error(scan.state)
  return [...scan.folders.keys()].sort(compareCodePoints)
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

for (const [kind, createDisk] of [['a local disk', createLocalDisk], ['a network disk', createNetworkDisk]] as const) {
  t.test(`K4: skills are the folders with a safe name, on ${kind}`, async (t) => {
    const root = createRoot(t)
    for (const name of ['demo/nested', 'demo/.git', '__proto__', 'é', 'x'.repeat(255)]) fs.mkdirSync(join(root, name))
    fs.mkdirSync(Buffer.concat([Buffer.from(`${root}/not-utf8-`), Buffer.from([0xff])]))
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
  const scan = await scanRoot(createLocalDisk(), rootAt(join(base, 'root')))
  const realPath = fs.realpathSync(join(base, 'real/demo'))
  t.match(scan, { state: 'ok', realPath: fs.realpathSync(join(base, 'real')) })
  if (scan.state !== 'ok') return
  t.strictSame(scan.folders.get('demo'), { name: 'demo', type: 'project', path: join(base, 'root/demo'), realPath, linked: false })
  t.strictSame(scan.folders.get('alias'), { name: 'alias', type: 'project', path: join(base, 'root/alias'), realPath, linked: true })
})

t.test('K14: the states of a root', async (t) => {
  const base = t.testdir({ file: '', root: {}, dangling: t.fixture('symlink', 'nothing'), loop: t.fixture('symlink', 'loop'), 'to-file': t.fixture('symlink', 'file') })
  const stateOf = async (name: string, disk: Disk = createLocalDisk()) => (await scanRoot(disk, rootAt(join(base, name)))).state
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
  const begun = { realpath: false, readdir: false }
  disk.intercept = (operation) => {
    if (operation !== 'realpath' && operation !== 'readdir') return
    if (!begun[operation]) relink(operation === 'realpath' ? 'b' : 'a')
    begun[operation] = true
  }
  const scan = await scanRoot(disk, rootAt(join(base, 'root')))
  t.match(scan, { state: 'ok' })
  if (scan.state !== 'ok') return
  const signed = fs.statSync(scan.realPath, { bigint: true }).ino
  t.equal(scan.signature.ino, signed, 'the signature is that of the folder whose names were read')
  t.strictSame([...scan.folders.keys()], ['two'])
})
