import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createMetrics } from '../../../src/observe/metrics.ts'
import { DamagedStoreError, gitError, runGit, wholeOutput } from '../../../src/sources/git/git-command.ts'
import { SOURCE_KINDS } from '../../../src/sources/kinds.ts'
import { createRepository, skillFiles, startGitHost, startTeam } from '../../helper/git.ts'
import { skillText, startManager, textOf } from '../../helper/skills.ts'
import { openSources, sourceAt } from '../../helper/sources.ts'

/** Where the only source keeps its state. */
function folderOf (stateDir: string): string {
  return join(stateDir, 'sources', readdirSync(join(stateDir, 'sources'))[0] ?? '')
}

t.test('K83: a repository is a root like any other with the revisions of a folder, and ' +
  'follows its branch', async (t) => {
  const repository = createRepository(t)
  const first = repository.commit({
    ...skillFiles('a', 'b'),
    'skills/b/scripts/run.sh': 'echo\n',
    'skills/a/data.txt': 'one\r\n',
    '.gitattributes': '* text eol=lf\n*.md export-ignore\n'
  })
  const { skills, sources, status } = await openSources(t, [sourceAt(`git+file://${repository.path}`)])
  t.strictSame(await skills.list(), ['a', 'b'])
  t.equal(await textOf(() => skills.read('a', (skill) => skill.file('data.txt'))),
    repository.git(['show', 'HEAD:skills/a/data.txt']) + '\n', 'bytes are those of the blob')
  t.match(status(), {
    name: 'repo', kind: 'git', state: 'ok', revision: `main@sha1:${first}`, skills: 2, layout: 'tree'
  })
  const folder = await startManager(t, [join(repository.path, 'skills')])
  t.equal((await skills.read('b', (skill) => skill.manifest())).revision,
    (await folder.read('b', (skill) => skill.manifest())).revision, 'as that of the folder')

  const second = repository.commit({ 'skills/a/SKILL.md': skillText('a', 'Other instructions.\n'), ...skillFiles('c') })
  await sources.sync()
  t.match(await textOf(() => skills.read('a', (skill) => skill.mainFile('SKILL.md'))), /Other instructions/,
    'without a watcher, and whatever was asked before')
  t.strictSame(await skills.list(), ['a', 'b', 'c'])
  t.equal(status().revision, `main@sha1:${second}`)

  repository.git(['reset', '-q', '--hard', first])
  await sources.sync()
  t.strictSame(await skills.list(), ['a', 'b'], 'a branch that was forced back is followed')
})

t.test('K84: over HTTP, by branch, tag and commit; a pinned commit stays', async (t) => {
  const repository = createRepository(t, 'team.git')
  const first = repository.commit(skillFiles('a'))
  repository.git(['tag', '-a', '-m', 'one', 'v1'])
  repository.git(['checkout', '-q', '-b', 'feature/x'])
  const second = repository.commit(skillFiles('b'))
  const host = await startGitHost(t, join(repository.path, '..'))
  const base = `git+${host.url}/team.git`
  const { sources, skills } = await openSources(t, [
    sourceAt(`${base}#v1`), sourceAt(`${base}#feature/x`), sourceAt(`${base}#${first}`),
    sourceAt(base, { ref: 'feature/x', path: 'skills' })
  ])
  t.strictSame(sources.status.map(({ revision }) => revision),
    [`v1@sha1:${first}`, `feature/x@sha1:${second}`, `sha1:${first}`, `feature/x@sha1:${second}`])
  t.strictSame(sources.status.map(({ skills }) => skills), [1, 2, 1, 2])
  t.match((await skills.find('a'))?.findings, [{ code: 'shadowed' }],
    'of several sources with one skill the first wins, and a finding says so')
  repository.git(['tag', '-f', 'v1', second])
  await sources.sync()
  t.strictSame(sources.status.map(({ revision }) => revision).filter((_, index) => index !== 1),
    [`v1@sha1:${second}`, `sha1:${first}`, `feature/x@sha1:${second}`],
    'a tag that moves is followed, and moves no pinned commit')
  repository.git(['tag', '-f', 'v1', first])
  await sources.sync()
  t.equal(sources.status[0]?.revision, `v1@sha1:${first}`, 'back, too')
})

t.test('K84: a branch or tag may look like a short commit id or have a name that only git allows; the status of one ' +
  'that is missing says what to give', async (t) => {
  const repository = createRepository(t)
  const first = repository.commit(skillFiles('a'))
  const refs = ['20240101', 'abc1234', 'release#1', 'b\u00fcro,x']
  for (const ref of refs) repository.git(['branch', ref])
  const missing = [first.slice(0, 7), 'gone']
  const address = `git+file://${repository.path}`
  const { sources } = await openSources(t, [...refs, ...missing].map((ref) => sourceAt(`${address}#${ref}`)))
  t.strictSame(sources.status.map(({ revision, error }) => revision ?? error?.message), [
    ...refs.map((ref) => `${ref}@sha1:${first}`),
    ...missing.map((ref) => `the host has no branch or tag "${ref}"; give a commit by its full id`)
  ])
})

t.test('K84: nothing new costs one question', async (t) => {
  const { host, address } = await startTeam(t)
  const { sources } = await openSources(t, [sourceAt(address)])
  const before = host.requests.length
  await sources.sync()
  t.ok(host.requests.length - before <= 2, 'refs only')
})

/** The command lines of all processes. */
function commandLines (): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    } catch {
      return [] // It has ended meanwhile.
    }
  })
}

t.test('K84: a token reaches its host in a header, and no argument of a process, redirect, log, status or ' +
  'stored file', async (t) => {
  const { repository, host, address } = await startTeam(t)
  const thief = await startGitHost(t, join(repository.path, '..'))
  const secretFile = join(t.testdirName, 'token')
  writeFileSync(secretFile, 'hunter22-token\n')
  const expected = `Basic ${Buffer.from('x-access-token:hunter22-token').toString('base64')}`
  const seen: string[] = []
  host.fault = (request, response) => {
    seen.push(...commandLines())
    if (request.headers.authorization === expected) return false
    response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
    return true
  }
  const { sources, status, log, stateDir } = await openSources(t, [sourceAt(address, { auth: { secretFile } })])
  t.match(status(), { state: 'ok', skills: 1 })
  t.ok(seen.some((line) => line.includes('git-remote-http') || line.includes('fetch')), 'git was running')
  t.notOk(seen.some((line) => line.includes('hunter22') || line.includes(expected.slice('Basic '.length))))

  host.fault = (request, response) => {
    response.writeHead(301, { location: `${thief.url}${request.url ?? ''}` }).end()
    return true
  }
  await sources.sync()
  t.match(status(), { state: 'stale', error: { code: 'redirected' } })
  t.equal(thief.requests.length, 0)

  writeFileSync(secretFile, 'wrong-hunter22')
  host.fault = (_, response) => {
    response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end('hunter22-token')
    return true
  }
  await sources.sync()
  t.match(status(), { state: 'stale', error: { code: 'auth_failed' } })
  t.notMatch(JSON.stringify([log, sources.status]), /hunter22|aHVudGVy/)
  t.notMatch(stored(stateDir), /hunter22/)
})

function stored (folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map(
    (entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1')).join('\n')
}

t.test('K85: a source that fails keeps what was published, and says since when and why', async (t) => {
  const { host, address } = await startTeam(t)
  const { sources, status, log, skills } = await openSources(t, [sourceAt(address)])
  const faults: ReadonlyArray<readonly [string, number | 'cut']> =
    [['not_found', 404], ['unreachable', 429], ['unreachable', 500], ['unreachable', 'cut'], ['auth_failed', 403]]
  for (const [code, fault] of faults) {
    host.fault = (request, response) => {
      if (fault === 'cut') request.socket.destroy()
      else response.writeHead(fault).end()
      return true
    }
    await sources.sync()
    t.match(status(), { state: 'stale', skills: 1, error: { code }, failing_since: String }, String(fault))
  }
  t.strictSame(await skills.list(), ['a'])
  const lines = log.length
  await sources.sync()
  t.equal(log.length, lines, 'the same failure is logged once')
  const metrics = createMetrics({ skills, version: '1', readings: { sources: () => sources.status } })
  const { failing_since: since = '', checked_at: checked = '', changed_at: changed = '' } = status()
  const text = await metrics.registry.metrics()
  for (const [name, labels, time] of [['failing_since', ',code="auth_failed"', since], ['checked', '', checked],
    ['changed', '', changed]] as const) {
    const line = `skillserve_source_${name}_timestamp_seconds{source="team"${labels}} ${Date.parse(time) / 1000}\n`
    t.ok(text.includes(line), line)
  }
  host.fault = undefined
  await sources.sync()
  t.match(status(), { state: 'ok', failing_since: undefined })
})

t.test('K84: a repository of SHA-256 is fetched, and one without a default branch says so', async (t) => {
  const folder = t.testdir()
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
  git('init', '--quiet', '--object-format=sha256', '--initial-branch=main', '.')
  writeFileSync(join(folder, 'SKILL.md'), skillText('a'))
  git('add', '.')
  git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '--quiet', '-m', 'x')
  const { sources, status, skills } = await openSources(t, [sourceAt(`git+file://${folder}/.git`)],
    { stateDir: join(folder, 'state') })
  t.match(status(), { state: 'ok', revision: /^main@sha256:[0-9a-f]{64}$/ })
  t.strictSame(await skills.list(), ['a'])
  git('symbolic-ref', 'HEAD', 'refs/heads/gone')
  await sources.sync()
  t.match(status(), {
    error: {
      code: 'ref_not_found',
      message: 'the repository is empty, or has no default branch: give a branch as ref'
    }
  })
})

const FAILED = 'fatal: Could not read from remote repository.\n'
const UNPACKED = 'fatal: fetch-pack: invalid index-pack output\n'

/** What git prints, and the code of the failure. */
const FAILURES: ReadonlyArray<{ readonly code: string, readonly stderr: string }> = [
  { code: 'disk', stderr: `fatal: write error: No space left on device\n${UNPACKED}` },
  { code: 'disk', stderr: 'fatal: unable to access \'/state/config\': Permission denied\n' },
  { code: 'unreachable', stderr: `error: RPC failed; curl 18 transfer closed\nfatal: early EOF\n${UNPACKED}` },
  { code: 'unreachable', stderr: 'remote: fatal: No space left on device\nfatal: early EOF\n' },
  { code: 'unreachable', stderr: `ssh: connect to host git.example port 22: Permission denied\n${FAILED}` },
  { code: 'unreachable', stderr: `ssh: connect to host git.example port 22: Connection timed out\n${FAILED}` },
  { code: 'unreachable', stderr: 'fatal: unable to access \'https://h/\': Failed to connect to h: Permission denied' },
  { code: 'unreachable', stderr: 'fatal: unable to access \'https://h/\': Could not resolve host: h\n' },
  { code: 'refused_tree', stderr: `error: object 4b825dc: hasDotgit\nfatal: fsck error in packed object\n${UNPACKED}` },
  { code: 'refused_tree', stderr: `fatal: pack has bad object at offset 12: inflate returned -3\n${UNPACKED}` },
  { code: 'auth_failed', stderr: `fatal: detected dubious ownership in repository at '/srv/team.git'\n${FAILED}` },
  { code: 'auth_failed', stderr: `remote: cannot connect to backend: permission denied\n${FAILED}` },
  { code: 'auth_failed', stderr: `Load key "/k": Permission denied\ngit@h: Permission denied (publickey).\n${FAILED}` },
  { code: 'host_key', stderr: `Host key verification failed.\n${FAILED}` },
  { code: 'too_large', stderr: 'fatal: Out of memory, realloc failed' }
]

t.test('K85: what git prints of a failure has a code, and the log has its last lines', (t) => {
  for (const { code, stderr } of FAILURES) t.match(gitError(stderr, 128), { name: 'SourceError', code }, stderr)
  const { details = '' } = gitError(`${'remote: much\n'.repeat(200)}fatal: the remote end hung up unexpectedly\n`, 128)
  t.match(details, /hung up unexpectedly$/)
  for (const { code, stderr } of FAILURES) t.notOk(gitError(stderr, 128) instanceof DamagedStoreError, code)
  t.ok(gitError('fatal: not a git repository: \'store\'', 128) instanceof DamagedStoreError)
  t.notOk(gitError('remote: fatal: not a git repository: \'team\'', 128) instanceof DamagedStoreError)
  t.ok(gitError('fatal: anything', 128, true) instanceof DamagedStoreError, 'when only the store was used')
  t.end()
})

t.test('K84: a fetch that fails keeps the object store', async (t) => {
  const { repository, host, address } = await startTeam(t)
  const { sources, status, stateDir } = await openSources(t, [sourceAt(address)])
  const packs = (): string[] => readdirSync(join(folderOf(stateDir), 'cache/store/objects/pack'))
  const before = packs()
  repository.commit(skillFiles('b'))
  host.fault = (request, response) => {
    if (request.method !== 'POST') return false
    response.writeHead(502).end()
    return true
  }
  await sources.sync()
  t.match(status(), { state: 'stale', error: { code: 'unreachable' } })
  t.strictSame(packs(), before)
})

const REFS = [
  ...['release#1', 'a,b', 'b\u00fcro', 'feature/x@2', '(old)', 'v1.0'].map((ref) => ({ ref, isTaken: true })),
  ...['-x', '--upload-pack=x', 'a..b', 'a b', 'a~1', 'a^', 'a:b', 'a?', 'a*', 'a[b', 'a\\b', '/a', 'a/', 'a//b', '.a',
    'a/.b', 'a.',
    'a.lock', 'a.lock/b', 'a@{1}', '@', 'a\nb', 'a\0b'].map((ref) => ({ ref, isTaken: false }))
]

t.test('K84: refs are what git check-ref-format takes, but for options', (t) => {
  for (const { ref, isTaken } of REFS) {
    const isOfGit = spawnSync('git', ['check-ref-format', '--allow-onelevel', ref.replace('\0', '\n')]).status === 0
    t.equal(isOfGit && !ref.startsWith('-'), isTaken, ref)
    const error = { name: 'AddressError', setting: 'ref', message: / is not a ref of git/ }
    const create = () => SOURCE_KINDS.find(({ kind }) => kind === 'git')?.create('https://h/r', { ref })
    if (isTaken) t.match(create(), { ref })
    else t.throws(create, error, ref)
  }
  t.end()
})

t.test('K84: git gets the proxies, the authorities and the agent for keys of the machine, nothing else of its ' +
  'environment, and bounded memory', async (t) => {
  const machine = {
    HTTPS_PROXY: 'a',
    https_proxy: 'b',
    ALL_PROXY: 'c',
    all_proxy: 'd',
    NO_PROXY: 'e',
    no_proxy: 'f',
    SSL_CERT_FILE: 'g',
    SSL_CERT_DIR: 'h',
    SSH_AUTH_SOCK: 'i',
    TMPDIR: '/tmp'
  }
  const run = async (command: string, env: NodeJS.ProcessEnv = {}): Promise<string> => (await runGit({
    args: ['-c', `alias.run=!${command}`, 'run'],
    signal: AbortSignal.timeout(60_000),
    env: { PATH: process.env['PATH'], ...env }
  }, wholeOutput)).toString().trim()
  const shown = async (env: NodeJS.ProcessEnv): Promise<Record<string, string>> => {
    const output = await run('env', env)
    return Object.fromEntries(
      output.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
  }
  const own = await shown({})
  const secrets = {
    GIT_DIR: '/nowhere',
    GIT_CONFIG_SYSTEM: '/etc/gitconfig',
    GIT_SSH_COMMAND: 'evil',
    http_proxy: 'x',
    AWS_SECRET_ACCESS_KEY: 'x',
    TRUST_FILE: 'x',
    HOME: '/root'
  }
  t.strictSame(await shown({ ...machine, ...secrets }), { ...own, ...machine })
  t.equal(own['HOME'], '/dev/null')
  t.equal(await run('ulimit -d'), '2097152', 'two gigabytes of memory at most')
})

t.test('K85: a restart without network serves the last state', async (t) => {
  const { host, address } = await startTeam(t)
  const source = sourceAt(address)
  const first = await openSources(t, [source])
  await first.sources.close()
  host.fault = (request) => {
    request.socket.destroy()
    return true
  }
  // What a process that was killed leaves behind.
  const folder = folderOf(first.stateDir)
  mkdirSync(join(folder, 'tmp', 'skills-x', 'half'), { recursive: true })
  mkdirSync(join(folder, 'skills', 'unlisted'))
  const { skills, status } = await openSources(t, [source], { stateDir: first.stateDir })
  t.strictSame(await skills.list(), ['a'])
  t.match(status(), { state: 'stale', revision: /^main@sha1:/ })
  t.notOk(existsSync(join(folder, 'skills', 'unlisted')))
  t.notOk(existsSync(join(folder, 'tmp', 'skills-x')))
})

t.test('K84: a pinned commit is not asked for again, after a restart neither, unless its ' +
  'files are missing', async (t) => {
  const { commit, host, address } = await startTeam(t)
  const source = sourceAt(`${address}#${commit}`)
  const first = await openSources(t, [source])
  const asked = host.requests.length
  await first.sources.sync()
  await first.sources.close()
  const { skills, sources, status, stateDir } = await openSources(t, [source], { stateDir: first.stateDir })
  t.match(status(), { state: 'ok', revision: `sha1:${commit}`, error: undefined })
  t.equal(host.requests.length, asked)
  rmSync(join(folderOf(stateDir), 'skills'), { recursive: true })
  await sources.sync()
  t.strictSame(await skills.list(), ['a'], 'what somebody removed is back')
  t.ok(host.requests.length > asked)
})

t.test('K84: a store of which files are damaged or missing is fetched anew within two checks', async (t) => {
  const repository = createRepository(t)
  repository.commit({ ...skillFiles('a'), 'skills/a/data.txt': 'one line of the data\n'.repeat(50) })
  const { sources, stateDir, status, skills } = await openSources(t, [sourceAt(`git+file://${repository.path}`)])
  const folder = folderOf(stateDir)
  const [store, published] = [join(folder, 'cache/store'), join(folder, 'skills')]
  const packs = (ending: string): string[] =>
    readdirSync(join(store, 'objects/pack')).filter((name) => name.endsWith(ending)).map((name) =>
      join(store, 'objects/pack', name))
  const write = (path: string, content: string | Buffer): void => {
    rmSync(path, { recursive: true, force: true })
    writeFileSync(path, content)
  }
  const damages: Readonly<Record<string, () => void>> = {
    'a lock of a process that was killed': () => { write(join(store, 'shallow.lock'), '') },
    'no objects': () => { rmSync(join(store, 'objects'), { recursive: true }) },
    'configuration without an end': () => { write(join(store, 'config'), '[[') },
    'pack of zeros': () => {
      for (const pack of packs('.pack')) {
        write(pack,
          Buffer.concat([readFileSync(pack).subarray(0, -300), Buffer.alloc(280), readFileSync(pack).subarray(-20)]))
      }
    }
  }
  for (const [what, damage] of Object.entries(damages)) {
    damage()
    // All is read again from the store.
    for (const name of readdirSync(published)) rmSync(join(published, name), { recursive: true })
    for (let checks = 0; checks < 2; checks++) await sources.sync()
    t.match(status(), { state: 'ok', skills: 1, error: undefined }, what)
    t.match(await textOf(() => skills.read('a', (skill) => skill.file('data.txt'))),
      /^(?:one line of the data\n){50}$/, what)
  }
})

t.test('K85: a state folder that is removed while the service runs is there again after the next check, and so ' +
  'are its skills', async (t) => {
  const repository = createRepository(t)
  repository.commit(skillFiles('a', 'b'))
  const { stateDir, sources, status, skills, log } = await openSources(t, [sourceAt(`git+file://${repository.path}`)])
  const folder = folderOf(stateDir)
  const [lost = ''] = readdirSync(join(folder, 'skills'))
  for (const gone of [stateDir, join(folder, 'tmp'), join(folder, 'skills', lost)]) {
    rmSync(gone, { recursive: true })
    await sources.sync()
    t.match(status(), { state: 'ok', skills: 2, error: undefined }, gone)
    for (const name of ['a', 'b']) {
      t.match(await textOf(() => skills.read(name, (skill) => skill.mainFile('SKILL.md'))),
        new RegExp(`name: ${name}`), gone)
    }
  }
  t.equal(
    log.filter(({ message }) => message.startsWith('skills of this source are missing in the state folder')).length, 2)
})

t.test('K83: what cannot be written at the start is told in one sentence, and so is a file of authorities that ' +
  'cannot be read', async (t) => {
  const repository = createRepository(t)
  repository.commit(skillFiles('a'))
  const source = sourceAt(`git+file://${repository.path}`)
  const stateDir = t.testdir({ sources: '' })
  await t.rejects(openSources(t, [source], { stateDir }),
    { name: 'AddressError', message: /^the state folder .* cannot be written \(ENOTDIR.*\); choose another/ })
  const { status } = await openSources(t, [source],
    { stateDir: join(stateDir, 'other'), env: { ...process.env, NODE_EXTRA_CA_CERTS: join(stateDir, 'ca.pem') } })
  t.match(status().error, {
    code: 'tls', message: 'the file in NODE_EXTRA_CA_CERTS cannot be read (ENOENT: no such file or directory)'
  })
})
