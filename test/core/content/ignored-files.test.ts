import fs from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import type { SkillManager } from '../../../src/core/skill-manager.ts'
import type { Interceptor } from '../../helper/disk.ts'
import {
  countOpenBelow, createFaultyDisk, failing, osError, passTick, skill, skillText, startManager, textOf, until
} from '../../helper/skills.ts'
import { followed, startWatching } from '../../helper/watching.ts'
import { statusOf } from '../../../src/http/readiness.ts'

async function pathsOf (manager: SkillManager, name = 'demo'): Promise<readonly string[]> {
  return (await manager.read(name, (skill) => skill.manifest())).files.map(({ path }) => path)
}

async function archived (manager: SkillManager, name = 'demo'): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of (await manager.read(name, (skill) => skill.archive())).chunks()) chunks.push(chunk)
  return Buffer.concat(chunks).toString('latin1')
}

async function openText (manager: SkillManager, path: string): Promise<{ readonly bytes: Buffer }> {
  const file = await manager.read('demo', (skill) => skill.open(path))
  if (file.kind === 'stream') throw new Error('a small file is not streamed')
  return { bytes: file.content.bytes }
}

const SEGMENT = fc.constantFrom('a', 'b.md', 'c.log', 'drafts', 'node_modules', '__pycache__', '.git', 'x~', '.env',
  '.env.local', '.env.example', '.DS_Store', '.#a', '4913', 'é')
const PATTERN = fc.constantFrom('*.log', '/a', 'drafts/', '!b.md', '*', '!*.log', 'a/*', '**/b.md', 'demo/drafts',
  '/demo/a', 'é', '# no', '')
const TREE = fc.uniqueArray(fc.array(SEGMENT, { minLength: 1, maxLength: 3 }),
  { maxLength: 12, selector: (path) => path.join('/') })
const PATTERNS = fc.option(fc.array(PATTERN, { maxLength: 4 }), { nil: undefined })

t.test('K8: manifest, reading by name, links, archive and revision agree on what is hidden', async (t) => {
  await fc.assert(fc.asyncProperty(TREE, PATTERNS, PATTERNS, async (tree, own, ofRoot) => {
    const base = fs.realpathSync(t.testdir({ root: { demo: skill('demo') }, copy: { demo: {} } }))
    const [demo, copy] = [join(base, 'root/demo'), join(base, 'copy/demo')]
    const paths = ['SKILL.md', ...tree.map((path) => path.join('/'))].filter((path, _index, all) =>
      !all.some((other) => other.startsWith(`${path}/`)))
    for (const path of paths.slice(1)) write(join(demo, path), `text of ${path};`)
    if (own !== undefined) write(join(demo, '.skillignore'), own.join('\n'))
    if (ofRoot !== undefined) write(join(base, 'root/.skillignore'), ofRoot.join('\n'))
    fs.mkdirSync(join(demo, 'links'))
    for (const [index, path] of paths.entries()) fs.symlinkSync(join(demo, path), join(demo, 'links', `link${index}`))

    const manager = await startManager(t, [join(base, 'root')])
    if (ofRoot?.includes('*') === true && !(await manager.list()).includes('demo')) return manager.close()
    const listed = await pathsOf(manager)
    const archive = await archived(manager)
    for (const path of [...paths, ...paths.map((_path, index) => `links/link${index}`)]) {
      const isListed = listed.includes(path)
      const isRead = !String(await textOf(() => manager.read('demo', (skill) => skill.file(path)))).startsWith(
        'file_not_found')
      const isOpened = !String(await textOf(() => openText(manager, path))).startsWith('file_not_found')
      if (isRead !== isListed || isOpened !==
        isListed) throw new Error(`${path}: listed ${isListed}, read ${isRead}, opened ${isOpened}`)
      if (path !== 'SKILL.md' && !path.startsWith('links/') && archive.includes(`text of ${path};`) &&
        !isListed) throw new Error(`${path} is in the archive`)
    }
    for (const path of listed) write(join(copy, path), fs.readFileSync(join(demo, path)))
    const plain = await startManager(t, [join(base, 'copy')])
    if (own === undefined && (await manager.read('demo', (skill) => skill.manifest())).revision !==
      (await plain.read('demo', (skill) => skill.manifest())).revision) {
      throw new Error('what is hidden is part of the revision')
    }
    await manager.close()
    await plain.close()
  }), { numRuns: 20 })
})

t.test('K8: an ignore file of the skill counts at the next question, whatever happens to it', async (t) => {
  const base = t.testdir({ demo: skill('demo', { 'a.md': 'a', 'b.log': 'b', docs: { 'c.log': 'c' } }) })
  const file = join(base, 'demo/.skillignore')
  const manager = await startManager(t, [base])
  const read = () => textOf(() => manager.read('demo', (skill) => skill.file('b.log')))
  t.equal(await read(), 'b')
  for (let round = 0; round < 3; round++) {
    fs.writeFileSync(file, '*.log\n')
    t.match(await read(), 'file_not_found')
    t.strictSame(await pathsOf(manager), ['.skillignore', 'SKILL.md', 'a.md'])
    // In place, of the same size, within one tick of the clock.
    fs.writeFileSync(file, '/a.md\n')
    t.equal(await read(), 'b')
    t.match(await textOf(() => manager.read('demo', (skill) => skill.file('a.md'))), 'file_not_found')
    fs.writeFileSync(file, '*.log\n')
    t.match(await read(), 'file_not_found')
    fs.rmSync(file)
    t.equal(await read(), 'b')
  }
  fs.writeFileSync(file, 'SKILL.md\n')
  t.match(await textOf(() => manager.read('demo', (skill) => skill.mainFile('SKILL.md'))), 'main_file_not_found')
  t.match((await manager.find('demo'))?.findings, [{ code: 'main_file_missing' }])
  fs.rmSync(file)
  passTick(base)
  t.equal(await textOf(() => manager.read('demo', (skill) => skill.mainFile('SKILL.md'))), skillText('demo'))
})

t.test('K8: the ignore file of a root counts for all skills in it; no skill can take it back', async (t) => {
  const base = t.testdir({
    '.skillignore': '*.log\n/demo/secret\ndrafts/\n',
    demo: skill('demo', { 'b.log': 'b', secret: { a: 'a' }, '.skillignore': '!*.log\n' }),
    other: skill('other', { secret: { a: 'a' } }),
    drafts: skill('drafts')
  })
  const manager = await startManager(t, [base])
  t.strictSame(await manager.list(), ['demo', 'other'])
  t.match(statusOf(manager).roots, [{ skills: 2, skipped: 1 }])
  t.strictSame(await pathsOf(manager), ['.skillignore', 'SKILL.md'])
  t.strictSame(await pathsOf(manager, 'other'), ['SKILL.md', 'secret/a'])
  t.match(await textOf(() => manager.read('demo', (skill) => skill.file('secret/a'))), 'file_not_found')

  for (let round = 0; round < 3; round++) {
    fs.writeFileSync(join(base, '.skillignore'), '*.txt\n')
    t.equal(await textOf(() => manager.read('demo', (skill) => skill.file('b.log'))), 'b',
      'an edit counts at the next question')
    t.strictSame(await manager.list(), ['demo', 'drafts', 'other'])
    fs.writeFileSync(join(base, '.skillignore'), '*.log\ndrafts\n')
    t.match(await textOf(() => manager.read('demo', (skill) => skill.file('b.log'))), 'file_not_found')
    t.match(await textOf(() => manager.read('drafts', (skill) => skill.file('SKILL.md'))), 'skill_not_found')
  }
  fs.rmSync(join(base, '.skillignore'))
  t.equal(await textOf(() => manager.read('demo', (skill) => skill.file('b.log'))), 'b')
})

t.test('K52: a new ignore file in a root is followed; an edit of a skill\'s own is a change', async (t) => {
  const root = t.testdir({ demo: skill('demo'), drafts: skill('drafts') })
  const manager = await startWatching(t, root)
  let changed = 0
  manager.catalog.on('changed', (changes) => { changed += changes.some(({ name }) => name === 'demo') ? 1 : 0 })
  fs.writeFileSync(join(root, '.skillignore'), 'drafts\n')
  await until(() => !manager.indexedNames().includes('drafts') && changed > 0)
  const before = changed
  fs.writeFileSync(join(root, 'demo/.skillignore'), '*.log\n')
  await until(() => changed > before)
  fs.rmSync(join(root, '.skillignore'))
  await followed(manager, root)
})

t.test('K8: while an ignore file cannot be used, only the main file is served, and a finding says so', async (t) => {
  const cases: Readonly<Record<string, readonly [message: RegExp, make: (file: string) => void]>> = {
    'too large': [/has more than 16384 bytes/, (file) => { fs.writeFileSync(file, '#'.repeat(20_000)) }],
    'not UTF-8': [/UTF-8/, (file) => { fs.writeFileSync(file, Buffer.from([0xff])) }],
    'too many wildcards': [/wildcards/, (file) => { fs.writeFileSync(file, '*a*b*c*d\n') }],
    'a folder': [/is not a regular file/, (file) => { fs.mkdirSync(file) }],
    'a link that leads out': [/is not a regular file/, (file) => { fs.symlinkSync('/etc/hosts', file) }],
    'a link to nothing': [/is not a regular file/, (file) => { fs.symlinkSync('nothing', file) }]
  }
  for (const [what, [message, make]] of Object.entries(cases)) {
    for (const place of ['root/demo/.skillignore', 'root/.skillignore']) {
      const base = t.testdir({ root: { demo: skill('demo', { 'a.md': 'a', sub: { 'SKILL.md': 'x' } }) } })
      make(join(base, place))
      const manager = await startManager(t, [join(base, 'root')])
      t.strictSame(await pathsOf(manager), ['SKILL.md'], `${place} is ${what}`)
      t.match(await textOf(() => manager.read('demo', (skill) => skill.file('a.md'))), 'file_not_found')
      t.match(await manager.find('demo'), { findings: [{ code: 'ignore_file_unusable', message }] })
      t.equal(countOpenBelow(base), 0)
      fs.rmSync(join(base, place), { recursive: true })
      fs.writeFileSync(join(base, place), '# nothing\n')
      t.match(await manager.list(), ['demo'])
      t.equal(await textOf(() => manager.read('demo', (skill) => skill.file('a.md'))), 'a')
      await manager.close()
    }
  }
  const base = t.testdir({ demo: skill('demo', { 'a.md': 'a', '.skillignore': 'a.md\n' }) })
  const disk = createFaultyDisk({ intercept: failing('open', '.skillignore', 'EACCES') })
  const manager = await startManager(t, [base], { disk })
  t.match(await manager.find('demo'), { findings: [{ code: 'ignore_file_unusable', message: /may not be read/ }] })
  t.match(await textOf(() => manager.read('demo', (skill) => skill.file('a.md'))), 'file_not_found')
})

t.test('K8 K53: a manifest is of one moment: the rules that it lists are those that it was made by', async (t) => {
  const [before, after] = ['*.log\n', '*\n!.skillignore\n']
  for (const moment of ['readdir', 'open'] as const) {
    const base = t.testdir({ demo: skill('demo', { 'a.md': 'a', 'b.log': 'b', '.skillignore': before }) })
    const disk = createFaultyDisk({ ageMs: 60_000 })
    const manager = await startManager(t, [base], { disk })
    let isReplaced = false
    disk.intercept = (operation, path, file) => {
      // Once the rules have been compared with those of the index: its folder is listed, or the first of its files is
      // opened.
      if (isReplaced || operation !== moment ||
        !(moment === 'readdir' ? path.endsWith('/demo') : file.endsWith('/.skillignore'))) return
      isReplaced = true
      // In place: its folder stays as it is.
      fs.writeFileSync(join(base, 'demo/.skillignore'), after)
    }
    t.strictSame(await pathsOf(manager), ['.skillignore'], moment)
    t.ok(isReplaced)
    await manager.close()
  }
})

t.test('K8 K53: what the ignore file of a root hid before it was written is nowhere', async (t) => {
  const base = t.testdir({ '.skillignore': '*.log\n', demo: skill('demo', { 'a.md': 'a' }) })
  const disk = createFaultyDisk({ ageMs: 60_000 })
  const manager = await startManager(t, [base], { disk })
  let isHidden = false
  disk.intercept = (operation, path) => {
    if (isHidden || operation !== 'lstat' || !path.endsWith('/demo/a.md')) return
    isHidden = true
    // In place: the folders stay as they are.
    fs.writeFileSync(join(base, '.skillignore'), '*.log\na.md\n')
    fs.writeFileSync(join(base, 'demo/a.md'), 'secret')
  }
  t.notMatch(await archived(manager), 'secret')
  t.ok(isHidden)
  t.strictSame(await pathsOf(manager), ['SKILL.md'])
})

t.test('K8: what an ignore file hides stays hidden while it cannot be read, and while it is written', async (t) => {
  const isOfFile = (file: string) => file.endsWith('.skillignore')
  const faults: Readonly<Record<string, (base: string) => Interceptor>> = {
    'an ignore file that cannot be opened': () => failing('open', '/.skillignore', 'EIO'),
    'an ignore file whose state is not known': () =>
      (operation, _path, file) => { if (operation === 'fstat' && isOfFile(file)) throw osError('EIO') },
    'a folder that cannot be listed': () => failing('readdir', '/demo', 'EIO'),
    'a folder that may not be listed': () => failing('readdir', '/demo', 'EACCES'),
    'an ignore file that is written twice while it is read': (base) => {
      let left = 2
      return (operation, _path, file) => {
        if (operation === 'read' && isOfFile(file) && left-- >
        0) fs.writeFileSync(join(base, 'demo/.skillignore'), `${'#'.repeat(left)}\na.md\n`)
      }
    }
  }
  for (const [what, fault] of Object.entries(faults)) {
    const base = t.testdir({ demo: skill('demo', { 'a.md': 'canary', '.skillignore': 'a.md\n' }) })
    const disk = createFaultyDisk()
    const manager = await startManager(t, [base], { disk })
    fs.writeFileSync(join(base, 'demo/b.md'), 'b')
    disk.intercept = fault(base)
    t.match(await textOf(() => manager.read('demo', (skill) => skill.file('a.md'))), /^file_not_found/, what)
    disk.intercept = () => {}
    t.equal(await textOf(() => manager.read('demo', (skill) => skill.file('b.md'))), 'b', what)
    await manager.close()
  }
})

function write (path: string, content: string | Buffer): void {
  fs.mkdirSync(dirname(path), { recursive: true })
  fs.writeFileSync(path, content)
}
