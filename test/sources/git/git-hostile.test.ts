import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createRepository, type Repository, skillFiles, startGitHost } from '../../helper/git.ts'
import { skillText } from '../../helper/skills.ts'
import { openSources, sourceAt } from '../../helper/sources.ts'

/** A blob in a repository. */
function blob ({ git }: Repository, content: string | Buffer): string {
  return git(['hash-object', '-w', '--stdin'], content)
}

/** Lines of a tree that git would not make of files: entries by name, which are blobs, links, or trees. */
function tree ({ git }: Repository, ...lines: readonly string[]): string {
  return git(['mktree', '-z', '--missing'], lines.map((line) => `${line}\0`).join(''))
}

/** A source whose first commit is good, and what it says after the next one. */
async function openGood (t: Test, limits: Readonly<Record<string, string>> = {}) {
  const repository = createRepository(t)
  const first = repository.commit(skillFiles('good'))
  const opened = await openSources(t, [sourceAt(`git+file://${repository.path}`, limits)])
  return { ...opened, repository, first }
}

t.test('K84: a hostile tree is refused as a whole, named, and the commit before it is served', async (t) => {
  const { repository, sources, skills, status, first, stateDir } = await openGood(t)
  const file = blob(repository, skillText('evil'))
  const good = repository.git(['rev-parse', `${first}:skills`])
  let deep = tree(repository, `100644 blob ${file}\tSKILL.md`)
  for (let depth = 0; depth < 24; depth++) deep = tree(repository, `040000 tree ${deep}\td`)
  const table: ReadonlyArray<readonly [what: string, lines: readonly string[]]> = [
    ['a repository in the tree', [`040000 tree ${tree(repository, `100644 blob ${file}\tconfig`)}\t.git`]],
    ['a name for it on Windows', [`040000 tree ${tree(repository, `100644 blob ${file}\tconfig`)}\tGIT~1`]],
    ['a name for it on macOS', [`040000 tree ${tree(repository, `100644 blob ${file}\tconfig`)}\t.g\u200cit`]],
    ['a way up', [`100644 blob ${file}\t..`]],
    ['too deep', [`040000 tree ${deep}\tdeep`]],
    ['a name of 4 KB', [`100644 blob ${file}\t${'n'.repeat(4_000)}`]]
  ]
  for (const [what, lines] of table) {
    const commit = repository.commitTree([...lines, `040000 tree ${good}\tskills`])
    await sources.sync()
    t.match(status(), { state: 'stale', revision: `main@sha1:${first}`, error: { code: 'refused_tree' } },
      `${what} ${commit}`)
  }
  t.strictSame(await skills.list(), ['good'])
  t.notOk(existsSync(join(stateDir, 'evil')))
  const last = repository.commitTree([`040000 tree ${good}\tskills`])
  await sources.sync()
  t.match(status(), { state: 'ok', revision: `main@sha1:${last}` })
})

t.test('K84: what no disk can hold is refused and named where it lies in a skill, and is ' +
  'nothing elsewhere', async (t) => {
  const { repository, sources, skills, status, first } = await openGood(t)
  const file = blob(repository, skillText('evil'))
  const link = (target: string | Buffer, name: string) => `120000 blob ${blob(repository, target)}\t${name}`
  const good = `040000 tree ${repository.git(['rev-parse', `${first}:skills`])}\tskills`
  const lines: Readonly<Record<string, string>> = {
    'a long name': `100644 blob ${file}\t${'n'.repeat(256)}`,
    'a long name of a folder': `040000 tree ${tree(repository, `100644 blob ${file}\tx`)}\t${'é'.repeat(130)}`,
    'a link without a target': link('', 'empty'),
    'a link with a NUL': link(Buffer.from('a\0b'), 'nul'),
    'a long link': link('x'.repeat(4_096), 'long'),
    'a longer link': link('x'.repeat(5_000), 'longer')
  }
  for (const [what, line] of Object.entries(lines)) {
    const evil = tree(repository, `100644 blob ${file}\tSKILL.md`, line)
    repository.commitTree([`040000 tree ${tree(repository, `040000 tree ${evil}\tevil`)}\tskills`])
    await sources.sync()
    const message = /\t(.*)$/.exec(line)?.[1]?.slice(0, 20) ?? ''
    const error = { code: 'refused_tree', message }
    t.match(status(), { state: 'stale', revision: `main@sha1:${first}`, error }, what)
  }
  repository.commitTree([...Object.values(lines), good])
  await sources.sync()
  t.match(status(), { state: 'ok' }, 'next to the skills')
  t.strictSame(await skills.list(), ['good'])
})

t.test('K4, K84: odd but honest trees are served, and what is no skill is named', async (t) => {
  const { repository, sources, skills, status } = await openGood(t)
  const main = (name: string) => blob(repository, skillText(name))
  const skill = (name: string, ...more: readonly string[]) =>
    `040000 tree ${tree(repository, `100644 blob ${main(name)}\tSKILL.md`, ...more)}`
  const link = (target: string) => `120000 blob ${blob(repository, target)}`
  const a = skill('a', `${link('/etc/passwd')}\tabsolute`, `${link('../../../../etc/passwd')}\tup`,
    `${link('SKILL.md')}\tinside`, `160000 commit ${'a'.repeat(40)}\tmodule`, `100755 blob ${main('x')}\tnew\nline`,
    `100644 blob ${main('x')}\tback\\slash`, `100644 blob ${main('x')}\tend `)
  const all = tree(repository, `${a}\ta`, `${skill('B')}\tB`, `${skill('b')}\tb`, `${skill('x')}\tbad\nname`,
    `${skill('x')}\t\u202egnp`, `${link('../../outside')}\tfar`, `${link('/opt/skills/gone')}\tinstalled`,
    `${link('a')}\tnear`)
  repository.commitTree([`040000 tree ${all}\tskills`])
  await sources.sync()
  t.strictSame(status().state, 'ok', JSON.stringify(status().error))
  t.strictSame((await skills.list()).filter((name) => ['a', 'B', 'b', 'near', 'far'].includes(name)),
    ['B', 'a', 'b', 'near'])
  const { files } = await skills.read('a', (skill) => skill.manifest())
  t.notOk(files.some(({ path }) => ['absolute', 'up', 'module'].includes(path)), 'no byte from outside')
  t.ok(files.some(({ path }) => path === 'inside'))
  const reasons = status().left_out?.first.map(({ path, reason }) => `${path}: ${reason}`) ?? []
  for (const expected of ['skills/a/absolute: link_outside', 'skills/a/up: link_outside', 'skills/far: link_outside',
    'skills/installed: link_outside', 'skills/a/module: submodule']) {
    t.ok(reasons.includes(expected), `${expected} in ${reasons.join(', ')}`)
  }
  for (const path of ['absolute', 'up']) {
    await t.rejects(async () => { await skills.read('a', (skill) => skill.file(path)) })
  }
})

t.test('K84: a file whose name is not UTF-8 is left out and named, and not published under another name', async (t) => {
  const { repository, sources, skills, status } = await openGood(t)
  const treeOf = (...lines: readonly Buffer[]) =>
    repository.git(['mktree', '-z'], Buffer.concat(lines.flatMap((line) => [line, Buffer.from([0])])))
  const commit = (text: string): void => {
    const file = (name: string, bytes = text) =>
      Buffer.from(`100644 blob ${blob(repository, bytes)}\t${name}`, 'latin1')
    const skill = treeOf(file('SKILL.md', skillText('a')), file('x\xff.txt'), file('x\xfe.txt'), file('y.txt'))
    repository.commitTree([`040000 tree ${treeOf(Buffer.from(`040000 tree ${skill}\ta`))}\tskills`])
  }
  for (const text of ['one', 'two']) {
    commit(text)
    await sources.sync()
    t.match(status(),
      { state: 'ok', skills: 1, left_out: { first: [{ path: 'skills/a/x\ufffd.txt', reason: 'unsafe_name' }] } },
      JSON.stringify(status().error))
    t.strictSame((await skills.read('a', (skill) => skill.manifest())).files.map(({ path }) => path),
      ['SKILL.md', 'y.txt'])
    t.equal((await skills.read('a', (skill) => skill.file('y.txt'))).bytes.toString(), text)
  }
})

t.test('K84: attributes, filters, hooks and the configuration of a repository change nothing ' +
  'and run nothing', async (t) => {
  const repository = createRepository(t, 'team.git')
  const marker = join(t.testdirName, 'ran')
  const script = join(t.testdirName, 'run.sh')
  writeFileSync(script, `#!/bin/sh\ntouch ${marker}\ncat\n`)
  chmodSync(script, 0o755)
  repository.git(['config', 'filter.evil.smudge', script])
  repository.git(['config', 'core.fsmonitor', script])
  for (const hook of ['post-checkout', 'reference-transaction', 'pre-auto-gc']) {
    writeFileSync(join(repository.path, '.git/hooks', hook), `#!/bin/sh\ntouch ${marker}\n`)
    chmodSync(join(repository.path, '.git/hooks', hook), 0o755)
  }
  writeFileSync(join(t.testdirName, '.gitconfig'),
    `[filter "evil"]\n smudge = ${script}\n required = true\n[core]\n fsmonitor = ${script}\n`)
  repository.commit({
    ...skillFiles('a'), 'skills/a/crlf.txt': 'a\r\nb\n', 'skills/a/id.txt': '$Id$\n', 'skills/a/hidden.txt': 'x'
  })
  writeFileSync(join(repository.path, '.gitattributes'),
    '* filter=evil text eol=lf ident\nskills/a/hidden.txt export-ignore\n')
  repository.git(['add', '.gitattributes'])
  repository.git(['commit', '-q', '-m', 'attributes'])
  const host = await startGitHost(t, join(repository.path, '..'))
  rmSync(marker, { force: true })
  const { skills } = await openSources(t, [sourceAt(`git+${host.url}/team.git`)],
    { env: { PATH: process.env.PATH, HOME: t.testdirName } })
  t.equal((await skills.read('a', (skill) => skill.file('crlf.txt'))).utf8, 'a\r\nb\n')
  t.equal((await skills.read('a', (skill) => skill.file('id.txt'))).utf8, '$Id$\n')
  t.equal((await skills.read('a', (skill) => skill.file('hidden.txt'))).utf8, 'x')
  t.notOk(existsSync(marker), 'nothing of the repository ran')
})

t.test('K84: a repository that is too large leaves the commit before it, and nothing on the disk', async (t) => {
  const { repository, sources, status, first } = await openGood(t)
  repository.commit({ 'skills/good/large.bin': Buffer.alloc(51 * 1_048_576) })
  await sources.sync()
  t.match(status(), { state: 'stale', revision: `main@sha1:${first}`, error: { code: 'too_large' } })
  t.match(status().error?.message, /large\.bin/)
  const empty = blob(repository, '')
  const many = tree(repository, ...Array.from({ length: 1_000 }, (_, index) => `100644 blob ${empty}\t${index}`))
  const more = tree(repository, ...Array.from({ length: 210 }, (_, index) => `040000 tree ${many}\td${index}`))
  repository.commitTree([`040000 tree ${more}\tmany`])
  await sources.sync()
  t.match(status(), { state: 'stale', error: { code: 'too_large', message: /more than 200000 files/ } })
})

t.test('K85: a broken SKILL.md in a commit is a finding, and an LFS pointer is named', async (t) => {
  const { repository, sources, skills, status } = await openGood(t)
  repository.commit({
    'skills/bad/SKILL.md': '---\nname: [\n---\n',
    'skills/good/model.bin': `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 12345\n`
  })
  await sources.sync()
  t.match(status(), { state: 'ok', skills: 2 })
  t.match((await skills.find('bad'))?.findings?.length, Number)
  t.match(status().left_out?.first, [{ path: 'skills/good/model.bin', reason: 'lfs_pointer' }])
})

t.test('K84: over SSH, with a key, known hosts and nothing of the user, and no option from an address', async (t) => {
  const repository = createRepository(t, 'team.git')
  repository.commit(skillFiles('a'))
  const bin = join(t.testdirName, 'bin')
  const argv = join(t.testdirName, 'argv')
  mkdirSync(bin)
  // The program that git starts: it shows what it was given, and runs the command of the other side here.
  writeFileSync(join(bin, 'ssh'),
    `#!/bin/sh\nprintf '%s\\n' "$@" > ${argv}\nfor last; do :; done\nexec sh -c "$last"\n`)
  chmodSync(join(bin, 'ssh'), 0o755)
  const knownHostsFile = join(t.testdirName, 'known hosts')
  const keyFile = join(t.testdirName, "it's a key")
  for (const file of [knownHostsFile, keyFile]) writeFileSync(file, 'x\n')
  const { status } = await openSources(t,
    [sourceAt(`git+ssh://git@host.example:2222${repository.path}`, { auth: { keyFile, knownHostsFile } })], {
      env: { PATH: `${bin}:${process.env.PATH}` }
    })
  t.match(status(), { state: 'ok', skills: 1 })
  const given = readFileSync(argv, 'utf8').split('\n')
  for (const expected of ['/dev/null', keyFile, 'BatchMode=yes', 'StrictHostKeyChecking=yes',
    `UserKnownHostsFile=${knownHostsFile}`, 'IdentitiesOnly=yes', '2222', 'git@host.example']) {
    t.ok(given.includes(expected), `${expected} in ${given.join(' ')}`)
  }
})
