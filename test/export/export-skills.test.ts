import {
  cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, utimesSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import { buildService } from '../helper/build.ts'
import { runHere } from '../helper/command-line.ts'
import { serveFolder } from '../helper/fault-server.ts'
import { hasProgram, startNginx } from '../helper/proxies.ts'
import { runProcess } from '../helper/process.ts'
import { differences, installSkills } from '../helper/skills-client.ts'
import { makeKeyPair, sign } from '../helper/signing.ts'
import { skill, skills, skillText } from '../helper/skills.ts'

const EXAMPLES = fileURLToPath(new URL('../../skills/', import.meta.url))
const cli = fileURLToPath(new URL('../../node_modules/skills/bin/cli.mjs', import.meta.url))
/** For tests with a real server. */
const NO_NGINX = { skip: !hasProgram('nginx', '-v') && 'nginx is not on this machine' }

const INDEX = '.well-known/agent-skills/index.json'

interface Listed {
  readonly files: ReadonlyArray<{
    readonly path: string
    readonly content_type: string
    readonly cache_control: string
    readonly sha256: string
    readonly size_bytes: number
  }>
}

async function exportTo (out: string, ...args: readonly string[]) {
  return await runHere(['export', out, ...args])
}

/** The rules for caches that a host with a `_headers` file sends together for a path. */
function rulesFor (headers: string, path: string): string[] {
  let isMatching = false
  return headers.split('\n').flatMap((line) => {
    const pattern = line.replaceAll('.', '\\.').replaceAll('*', '.*').replaceAll(/:\w+/g, '[^/]+')
    if (line.startsWith('/')) isMatching = new RegExp(`^${pattern}$`).test(path)
    const [, rule] = /^ {2}Cache-Control: (.*)$/.exec(line) ?? []
    return isMatching && rule !== undefined ? [rule] : []
  })
}

/** Bytes and times of all files. */
function stateOf (folder: string): Record<string, string> {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true }).filter((entry) => entry.isFile())
  return Object.fromEntries(entries.map(({ parentPath, name }) => {
    const path = join(parentPath, name)
    return [path.slice(folder.length + 1),
      `${readFileSync(path).toString('base64')} ${statSync(path, { bigint: true }).mtimeNs}`]
  }).sort())
}

t.test('K93: an export behind a plain static server installs every example skill with the real client', async (t) => {
  const out = join(t.testdir(), 'out')
  const { code, stdout, stderr } = await runHere(['export', out, EXAMPLES])
  t.match({ code, stderr }, { code: 0, stderr: '' })
  t.match(stdout, /^6 skills in \d+ files: \d+ changed, 0 removed\n$/)
  const server = await serveFolder(t, out)
  const cwd = join(out, '../client')
  mkdirSync(cwd)
  const { succeeded, output, folder } = await installSkills(server.url, { cli, cwd })
  t.ok(succeeded, output)
  t.same(readdirSync(folder), readdirSync(EXAMPLES))
  for (const name of readdirSync(EXAMPLES)) t.same(differences(join(EXAMPLES, name), join(folder, name)), [], name)

  const { files } = JSON.parse(readFileSync(join(out, 'manifest.json'), 'utf8')) as Listed
  t.equal(files.at(-1)?.path, INDEX, 'the index comes last')
  for (const { path, sha256, size_bytes: size } of files) {
    const bytes = readFileSync(join(out, path))
    t.equal(createHash('sha256').update(bytes).digest('hex'), sha256, path)
    t.equal(bytes.length, size)
  }
  const others = Object.keys(stateOf(out)).filter((path) => !files.some((file) => file.path === path))
  t.same(others.sort(), ['.nojekyll', '_headers', 'manifest.json'], 'and nothing else is there')
  t.ok(readFileSync(join(out, '_headers'), 'utf8').match(/^\//gm)?.length === 6, 'Cloudflare takes 100 rules')
})

t.test('K93: the same behind nginx, with the configuration of deploy/nginx', NO_NGINX, async (t) => {
  const folder = t.testdir({ nginx: {}, client: {} })
  const out = join(folder, 'out')
  t.equal((await exportTo(out, EXAMPLES)).code, 0)
  const { url } = await startNginx(t, 'nginx/static.conf', { folder: join(folder, 'nginx'), root: out, isPublic: true })
  const { succeeded, output, folder: installed } = await installSkills(url, { cli, cwd: join(folder, 'client') })
  t.ok(succeeded, output)
  for (const name of readdirSync(EXAMPLES)) t.same(differences(join(EXAMPLES, name), join(installed, name)), [], name)

  const { files } = JSON.parse(readFileSync(join(out, 'manifest.json'), 'utf8')) as Listed
  for (const { path, content_type: type, cache_control: rule } of files.filter(({ path }) =>
    path.startsWith('.well-known/agent-skills/'))) {
    const { headers } = await fetch(`${url}/${encodeURI(path)}`)
    t.equal(headers.get('content-type'), type, path)
    t.equal(headers.get('cache-control'), rule, path)
    t.equal(headers.get('access-control-allow-origin'), '*')
  }
})

t.test('K93: what one caller sees is for no shared cache and no other web page behind nginx', NO_NGINX, async (t) => {
  const folder = t.testdir({
    nginx: {}, skills: skills('a', 'b'), 'access.yaml': 'rules: [{ groups: [team], roots: [skills] }]\n'
  })
  const out = join(folder, 'out')
  t.match(await exportTo(out, join(folder, 'skills'), '--access', join(folder, 'access.yaml'), '--as', 'group:team'),
    { code: 0 })
  const { url } = await startNginx(t, 'nginx/static.conf', { folder: join(folder, 'nginx'), root: out })
  const { files } = JSON.parse(readFileSync(join(out, 'manifest.json'), 'utf8')) as Listed
  t.ok(files.length > 4)
  for (const { path, cache_control: rule } of files) {
    const { status, headers } = await fetch(`${url}/${encodeURI(path)}`)
    t.equal(status, 200, path)
    t.match(rule, /^private, /)
    t.equal(headers.get('cache-control'), rule, path)
    t.equal(headers.get('access-control-allow-origin'), null, path)
  }
})

t.test('K93: the files are the answers of the service', async (t) => {
  const service = await buildService(t, {
    files: {
      small: skill('small'),
      deep: skill('deep', { references: { 'a b.md': 'x' }, 'large.bin': 'x'.repeat(400_000) }),
      lower: { 'skill.md': skillText('lower') }
    }
  })
  const out = join(service.folder, 'out')
  t.equal((await exportTo(out, service.root)).code, 0)
  const { files } = JSON.parse(readFileSync(join(out, 'manifest.json'), 'utf8')) as Listed
  for (const { path, content_type: type } of files) {
    const { status, bytes, headers } = await service.fetch(`/${encodeURI(path)}`)
    t.equal(status, 200, path)
    t.ok(bytes.equals(readFileSync(join(out, path))), path)
    t.equal(type.split(';', 1)[0], headers.get('content-type')?.split(';', 1)[0], `${path}: ${type}`)
  }
})

t.test('K93: a second export changes nothing, whatever the times of the files, and a change only ' +
  'what it has to', async (t) => {
  const base = t.testdir({ skills: { a: skill('a', { 'x.md': 'x' }), b: skill('b'), c: skill('c') } })
  const [root, out] = [join(base, 'skills'), join(base, 'out')]
  await exportTo(out, root)
  const before = stateOf(out)
  const earlier = JSON.parse(readFileSync(join(out, INDEX), 'utf8')) as {
    readonly skills: ReadonlyArray<{ readonly url: string }>
  }
  cpSync(root, join(base, 'copy'), { recursive: true })
  const copied = readdirSync(join(base, 'copy'), { recursive: true, encoding: 'utf8' })
  for (const path of copied) utimesSync(join(base, 'copy', path), 1, 1)
  t.match((await exportTo(out, join(base, 'copy'))).stdout, /: 0 changed, 0 removed\n$/)
  t.same(stateOf(out), before)

  writeFileSync(join(root, 'a/x.md'), 'other')
  rmSync(join(root, 'b'), { recursive: true })
  t.match((await exportTo(out, root)).stdout, /^2 skills in \d+ files: 5 changed, 1 removed\n$/,
    'a file, an archive, two indexes and the manifest')
  for (const { url } of earlier.skills) {
    t.ok(existsSync(join(out, '.well-known/agent-skills', url)), 'what an earlier index lists is still there')
  }
  t.match((await exportTo(out, root, '--prune')).stdout, /: 0 changed, 2 removed\n$/)
  rmSync(join(base, 'fresh'), { recursive: true, force: true })
  await exportTo(join(base, 'fresh'), root)
  t.same(differences(out, join(base, 'fresh')), [], 'as if there had been no export before')
})

t.test('K93: an export that was interrupted is finished by the next one, and leaves nothing behind', async (t) => {
  const base = t.testdir({ skills: { a: skill('a'), b: skill('b', { 'x.bin': randomBytes(100_000) }) } })
  const [root, out, fresh] = [join(base, 'skills'), join(base, 'out'), join(base, 'fresh')]
  await exportTo(fresh, root)
  const { code } = await runProcess(t, { args: ['export', out, root], ulimit: '-f 16' })
  t.not(code, 0, 'no file may have more than 16 KiB')
  t.notOk(existsSync(join(out, INDEX)), 'an index takes its place after everything that it lists')
  // What a process that was killed leaves.
  writeFileSync(join(out, '.skillserve-new'), '---\n')
  t.match(await exportTo(out, root), { code: 0, stderr: '' })
  t.same(differences(out, fresh), [])
})

t.test('K93: what cannot be exported is named, and the exit code is 1; links out of a skill are ' +
  'not followed', async (t) => {
  const base =
    t.testdir({ skills: { good: skill('good'), bad: { 'SKILL.md': '# No frontmatter\n' } }, 'secret.md': 'secret' })
  symlinkSync(join(base, 'secret.md'), join(base, 'skills/good/notes.md'))
  const { code, stdout } = await exportTo(join(base, 'out'), join(base, 'skills'))
  t.equal(code, 1)
  t.match(stdout, /^skipped: bad: \S.*\n1 skill in/)
  t.notMatch(JSON.stringify(stateOf(join(base, 'out'))), Buffer.from('secret').toString('base64'))
})

t.test('K93: a folder with something else in it, or in the skills, is refused with one line', async (t) => {
  const base = t.testdir({
    skills: { a: skill('a') },
    mine: { 'thesis.md': 'years of work' },
    site: { '.well-known': { 'security.txt': 'mail us' }, _headers: 'own' },
    app: { 'manifest.json': '{"name":"app"}', _headers: 'own' }
  })
  const root = join(base, 'skills')
  for (const { out, reason } of [
    ...['mine', 'site', 'app', '.'].map((name) => ({ out: join(base, name), reason: /not an earlier export/ })),
    ...['out', '.'].map((name) => ({ out: join(root, name), reason: /whose files are served/ }))
  ]) {
    const { code, stderr } = await exportTo(out, root)
    t.equal(code, 1, out)
    t.match(stderr, reason)
    t.equal(stderr.split('\n').length, 2, stderr)
  }
  t.match(await runHere(['export']), { code: 2, stderr: /missing required argument 'OUT'/ })
  renameSync(root, join(base, 'away'))
  t.match(await exportTo(join(base, 'out'), root), { code: 1, stderr: /not found/ })
  t.notOk(existsSync(join(base, 'out')))
})

t.test('K93: with an access file an export holds what one caller sees, with a trust file what a ' +
  'service would serve', async (t) => {
  const cwd = t.testdir({
    skills: { open: skill('open'), own: skill('own'), unsigned: skill('unsigned') },
    'access.yaml': 'rules:\n  - { groups: [anonymous], roots: [skills], skills: [open] }\n  - { groups: [team], ' +
      'roots: [skills] }\n',
    'trust.yaml': 'signers:\n  - { name: acme, key: acme.pem }\nroots: { skills: require }\n'
  })
  const { privatePem, publicPem } = makeKeyPair()
  writeFileSync(join(cwd, 'acme.pem'), publicPem)
  for (const name of ['open', 'own']) await sign(join(cwd, 'skills', name), { privatePem })
  const run = async (...args: readonly string[]) =>
    await runHere(['export', ...args], { cwd, env: { STATE_DIR: 'state' } })
  const namesIn = (out: string) => readdirSync(join(cwd, out, '.well-known/agent-skills')).sort()
  writeFileSync(join(cwd, 'nobody.yaml'), 'rules: []\n')
  mkdirSync(join(cwd, 'empty'))
  t.match(await run('x', 'empty'), { code: 1, stderr: 'skillserve: there are no skills to export\n' })
  t.match(await run('x', 'skills', '--access', 'nobody.yaml'),
    { code: 1, stderr: /^skillserve: there are no skills to export: anonymous sees none [^\n]+--as NAME [^\n]+\n$/ })
  const missing = `git+file://${join(cwd, 'missing')}`
  t.match(await run('x', missing, '--state-dir', join(cwd, 'state')),
    { code: 1, stderr: /^skillserve: source "missing" cannot be read: [^\n]+\n$/ })
  t.notOk(existsSync(join(cwd, 'x')))
  t.match(await run('anyone', 'skills', '--access', 'access.yaml'), { code: 0, stderr: '' })
  t.strictSame(namesIn('anyone'), ['index.json', 'open'])
  const rulesIn = (out: string) =>
    (JSON.parse(readFileSync(join(cwd, out, 'manifest.json'), 'utf8')) as Listed).files.map(
      ({ cache_control: rule }) => rule)
  const headersIn = (out: string) => readFileSync(join(cwd, out, '_headers'), 'utf8')
  t.ok(rulesIn('anyone').every((rule) => rule.startsWith('public, max-age=')))
  t.match(headersIn('anyone'), /Access-Control-Allow-Origin: \*\n[^]*Cache-Control: public, max-age=60\n/)
  t.match(await run('team', 'skills', '--access', 'access.yaml', '--as', 'group:team', '--trust', 'trust.yaml'), {
    code: 1, stdout: /^skipped: unsigned: quarantined: the skill has no signature \(skill\.oms\.sig\)\n2 skills in /
  })
  t.strictSame(namesIn('team'), ['index.json', 'open', 'own'])
  t.ok(rulesIn('team').every((rule) => rule.startsWith('private, max-age=')),
    'what some callers see is for no shared cache')
  t.match(headersIn('team'), /Cache-Control: private, max-age=31536000, immutable\n/)
  t.notMatch(headersIn('team'), /Access-Control|public/)
  for (const out of ['anyone', 'team']) {
    const { files } = JSON.parse(readFileSync(join(cwd, out, 'manifest.json'), 'utf8')) as Listed
    for (const { path, cache_control: rule } of files) {
      t.strictSame(rulesFor(headersIn(out), `/${path}`), [rule], `${out}: ${path}`)
    }
  }
  t.match(await run('team', 'skills', '--access', 'access.yaml'), { code: 0, stdout: /^1 skill in/ })
  t.strictSame(namesIn('team'), ['index.json', 'open'], 'what another caller saw does not stay')
  t.match(await run('anyone', 'skills'), { stdout: /^3 skills in/ })
  t.match(await run('anyone', 'skills', '--trust', 'trust.yaml'), { code: 1 })
  t.strictSame(namesIn('anyone'), ['index.json', 'open', 'own'], 'nor does what is quarantined')
  t.match(await run('x', 'skills', '--access', 'access.yaml', '--as', 'nobody'),
    { code: 1, stderr: /^skillserve: "nobody" is not a token or link of the access file/ })
  t.match(await run('x', 'skills', '--as', 'nobody'), { code: 1, stderr: /--as needs an access file/ })
})
