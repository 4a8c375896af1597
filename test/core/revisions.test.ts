import fs from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { SkillManager } from '../../src/core/skill-manager.ts'
import { statusOf } from '../../src/http/readiness.ts'
import { buildService, type Service, type ServiceOptions } from '../helper/build.ts'
import type { Interceptor } from '../helper/disk.ts'
import {
  countOpenBelow, createFaultyDisk, failing, osError, passTick, skill, skillText, startManager, textOf, until
} from '../helper/skills.ts'
import { followed, startWatching } from '../helper/watching.ts'

const NEVER = `sha256:${'0'.repeat(64)}`

/** Text of a file of `demo`, or the code of the refusal. */
async function textAt ({ app }: Service, revision: string, path = 'a.txt'): Promise<string> {
  const { statusCode, payload, json } = await app.inject(`/skills/demo/files/${path}?revision=${revision}`)
  return statusCode === 200 ? payload : json<{ code: string }>().code
}

async function revisionOf ({ app }: Service): Promise<string> {
  return (await app.inject('/skills/demo/files')).json<{ revision: string }>().revision
}

async function start (t: Test, keep: ServiceOptions['keep'] = {}, files: Record<string, string> = { 'a.txt': 'one' }) {
  const service = await buildService(t,
    { files: { demo: skill('demo', files), other: skill('other') }, options: { keep } })
  return { service, edit: (text: string) => { fs.writeFileSync(join(service.root, 'demo/a.txt'), text) } }
}

/** A service with two roots, of which the first wins, beside `new`. */
async function startTwo (t: Test, siblings: NonNullable<ServiceOptions['siblings']>): Promise<Service> {
  return await buildService(t,
    { files: null, options: { roots: ['first', 'second'], siblings: { first: {}, second: {}, ...siblings } } })
}

t.test('K59: a revision that was handed out stays readable after the skill has moved on or is gone', async (t) => {
  const { service, edit } = await start(t)
  const first = await revisionOf(service)
  edit('two')
  const second = await revisionOf(service)
  edit('three')
  t.strictSame([await textAt(service, first), await textAt(service, second)], ['one', 'two'])
  fs.rmSync(join(service.root, 'demo'), { recursive: true })
  t.equal(await textAt(service, first), 'one', 'of a skill that is gone')
  t.equal((await service.app.inject('/skills/demo/files/a.txt')).statusCode, 404)
})

t.test('K58 K59: the revision that a refusal names is kept from then on', async (t) => {
  const { service, edit } = await start(t)
  const [present = ''] = /sha256:[\da-f]{64}/.exec(
    (await service.app.inject(`/skills/demo?revision=${NEVER}`)).payload) ?? []
  edit('two')
  t.equal(await textAt(service, present), 'one')
})

t.test('K59: its time counts from the last use', async (t) => {
  let now = performance.now()
  t.intercept(performance, 'now', { value: () => now })
  const { service, edit } = await start(t, { keepMs: 1_000 })
  const first = await revisionOf(service)
  edit('two')
  for (let use = 0; use < 3; use++) {
    now += 900
    t.equal(await textAt(service, first), 'one')
  }
  now += 1_100
  t.equal(await textAt(service, first), 'revision_changed')
})

t.test('K59: revisions that were used last stay within the bytes, and 0 keeps none', async (t) => {
  const { service, edit } = await start(t, { maxBytes: 30_000 }, { 'a.txt': 'x'.repeat(10_000) })
  const revisions: string[] = []
  for (const letter of ['a', 'b', 'c', 'd']) {
    edit(letter.repeat(10_000))
    revisions.push(await revisionOf(service))
    await textAt(service, revisions[0] ?? '')
  }
  edit('now')
  t.strictSame(await Promise.all(revisions.map(async (revision) => (await textAt(service, revision)).at(0))),
    ['a', 'r', 'r', 'd'])

  for (const keep of [{ keepMs: 0 }, { maxBytes: 0 }]) {
    const none = await start(t, keep)
    const first = await revisionOf(none.service)
    none.edit('two')
    t.equal(await textAt(none.service, first), 'revision_changed')
  }
})

t.test('K8 K59: what an ignore file hides at the time of a request is in no kept revision', async (t) => {
  const [ofRoot, ofSkill] = ['.skillignore', 'demo/.skillignore']
  type Step = (root: string) => void
  const write = (file: string, text: string): Step => (root) => { fs.writeFileSync(join(root, file), text) }
  const remove = (file: string): Step => (root) => { fs.rmSync(join(root, file), { recursive: true }) }
  const courses: Readonly<Record<string, readonly Step[]>> = {
    'hidden by the root': [write(ofRoot, 'a.txt\n')],
    'hidden by the root, then whole': [write(ofRoot, 'a.txt\n'), write(ofRoot, 'demo/\n')],
    'hidden by the root, then removed': [write(ofRoot, 'a.txt\n'), remove('demo')],
    'hidden by its own file': [write(ofSkill, 'a.txt\n')],
    'removed, then hidden by the root': [remove('demo'), write(ofRoot, 'a.txt\n')]
  }
  for (const [what, steps] of Object.entries(courses)) {
    for (const rules of ['zzz\n', undefined]) {
      const { service } = await start(t)
      if (rules !== undefined) fs.writeFileSync(join(service.root, ofRoot), rules)
      const revision = await revisionOf(service)
      for (const step of steps) {
        step(service.root)
        // A first ignore file in a root is noticed when the root is listed.
        await service.skills.list()
        await service.skills.find('demo')
      }
      for (const path of ['files/a.txt', '', 'archive.zip']) {
        const { statusCode } = await service.app.inject(`/skills/demo${path && `/${path}`}?revision=${revision}`)
        t.ok([404, 412].includes(statusCode), `${what} (${rules}), ${path}: ${statusCode}`)
      }
    }
  }
})

t.test('K58: a label is that of the revision', async (t) => {
  const { service } = await start(t)
  const first = await revisionOf(service)
  fs.writeFileSync(join(service.root, 'demo/SKILL.md'), skillText('renamed'))
  const calling = (revision: string) =>
    service.post(`/agent/tool-call?revision=${revision}`, { function: { name: 'skill', arguments: { skill: 'demo' } } })
  t.match((await calling(first)).text, 'Instructions of demo')
})

t.test('K53 K58: all results under one revision are of one state, whenever a file changes', async (t) => {
  const disk = createFaultyDisk()
  const service = await buildService(t,
    { files: { demo: skill('demo', { docs: { 'a.md': 'one' } }) }, options: { disk } })
  const write = (text: string) => {
    fs.writeFileSync(join(service.root, 'demo/SKILL.md'), skillText('demo', text))
    fs.writeFileSync(join(service.root, 'demo/docs/a.md'), text)
  }
  const calls = [['get_skill', { skill_name: 'demo' }],
    ['read_file_in_skill', { skill_name: 'demo', file_path: 'docs/a.md' }]].map(([name, args]) =>
    ({ function: { name, arguments: args } }))
  for (let moment = 1; ; moment += 2) {
    write('one')
    let operations = 0
    disk.intercept = () => { if (++operations === moment) write('two') }
    const answer = (await service.app.inject({
      method: 'POST', url: '/agent/tool-call?revision=current', payload: calls
    })).json<Array<{ content: string }>>()
    const [document, file] = answer.map(({ content }) => content)
    if (file === undefined || document?.includes(`---\\n${file}`) !==
      true) t.fail(`a mixture when changed before operation ${moment}: ${JSON.stringify(answer)}`)
    if (operations >= moment) continue
    t.ok(moment > 5, `${moment} moments`)
    break
  }
})

t.test('K59: what the present skill hides is not read from a revision that another root keeps', async (t) => {
  const service = await startTwo(t, { first: { demo: skill('demo', { 'a.txt': 'secret' }), beta: skill('beta') } })
  const revision = await revisionOf(service)
  fs.renameSync(join(service.folder, 'first/demo'), join(service.folder, 'second/demo'))
  t.equal(await textAt(service, revision), 'secret', 'nothing is hidden')
  fs.writeFileSync(join(service.folder, 'second/demo/.skillignore'), 'a.txt\n')
  await revisionOf(service)
  for (const path of ['a.txt', 'SKILL.md']) t.equal(await textAt(service, revision, path), 'revision_changed')
})

t.test('K59: what the present skill hides is not read from a namesake, and its own revision is named', async (t) => {
  const service = await startTwo(t, {
    second: { demo: skill('demo', { 'a.txt': 'secret' }) },
    new: { demo: skill('demo', { '.skillignore': 'a.txt\n' }) }
  })
  const revision = await revisionOf(service)
  fs.renameSync(join(service.folder, 'new/demo'), join(service.folder, 'first/demo'))
  const present = await revisionOf(service)
  for (const text of ['other', 'another']) {
    t.match((await service.app.inject(`/skills/demo/files/a.txt?revision=${revision}`)).json(),
      { code: 'revision_changed', error: `The skill has changed: its revision is ${present} now` })
    fs.writeFileSync(join(service.folder, 'second/demo/other.txt'), text)
  }
})

t.test('K59: an edit of a namesake that is hidden, and what it ignores, changes nothing for others', async (t) => {
  const service = await startTwo(t, {
    first: { demo: skill('demo', { 'a.txt': 'one' }) },
    second: { demo: skill('demo', { '.skillignore': 'a.txt\n' }) }
  })
  const revision = await revisionOf(service)
  fs.writeFileSync(join(service.folder, 'first/demo/a.txt'), 'two')
  for (const rules of ['b.txt\n', 'c.txt\n']) {
    fs.writeFileSync(join(service.folder, 'second/demo/.skillignore'), rules)
    const [, second] = service.skills.parts.catalog.roots
    if (second !== undefined) await service.skills.parts.catalog.refresh(second)
    t.equal(await textAt(service, revision), 'one')
  }
})

t.test('K59: rules that were taken back hide nothing any more', async (t) => {
  const { service, edit } = await start(t)
  const revision = await revisionOf(service)
  edit('two')
  const rules = join(service.root, 'demo/.skillignore')
  fs.writeFileSync(rules, 'a.txt\n')
  t.equal(await textAt(service, revision), 'revision_changed')
  fs.rmSync(rules)
  t.equal(await textAt(service, revision), 'one')
})

t.test('K59: no reading of other files takes the place of a kept revision', async (t) => {
  const { service, edit } = await start(t, { maxBytes: 100_000 })
  const revision = await revisionOf(service)
  edit('two')
  for (const name of Array.from({ length: 40 }, (_, index) => `${index}.txt`)) {
    fs.writeFileSync(join(service.root, 'other', name), name.repeat(40_000))
    t.equal((await service.app.inject(`/skills/other/files/${name}`)).statusCode, 200)
  }
  t.equal(await textAt(service, revision), 'one')
})

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
  manager.parts.catalog.on('changed', (changes) => { changed += changes.some(({ name }) => name === 'demo') ? 1 : 0 })
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
  t.match(await manager.find('demo'), { findings: [{ code: 'ignore_file_unusable', message: /permission denied/ }] })
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

t.test('K8 K53: a file is not missing because an ignore file is written at that moment', async (t) => {
  const base = t.testdir({ demo: skill('demo', { 'b.md': 'b', '.skillignore': '' }) })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [base], { disk })
  let writes = 0
  disk.intercept = (operation, _path, file) => {
    if (operation !== 'read' || !file.endsWith('.skillignore') || writes > 0) return
    fs.writeFileSync(join(base, 'demo/.skillignore'), `#${++writes}\n`)
  }
  fs.writeFileSync(join(base, 'demo/.skillignore'), '# edited\n')
  t.equal(await textOf(() => manager.read('demo', (skill) => skill.file('b.md'))), 'b')
  t.equal(writes, 1)
})

function write (path: string, content: string | Buffer): void {
  fs.mkdirSync(dirname(path), { recursive: true })
  fs.writeFileSync(path, content)
}
