import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runHere } from '../helper/command-line.ts'
import { newSecret } from '../helper/guarded.ts'
import { launch, startProcess } from '../helper/process.ts'
import { makeKeyPair } from '../helper/signing.ts'
import { skill, skills, skillText, until } from '../helper/skills.ts'

const run = async (cwd: string, ...argv: readonly string[]) => await runHere(argv, { cwd })

t.test('K95: lock writes the same text for the same skills, and says what is different from ' +
  'the lock before', async (t) => {
  const cwd = t.testdir({ skills: skills('one', 'two'), more: skills('three', 'one') })
  t.strictSame(await run(cwd, 'lock'), { code: 0, stdout: 'skills.lock: 2 skills\n', stderr: '' })
  const text = fs.readFileSync(join(cwd, 'skills.lock'), 'utf8')
  t.match(text, /^#.*\n"one": sha256:[0-9a-f]{64}\n"two": sha256:[0-9a-f]{64}\n$/)
  t.strictSame(await run(cwd, 'lock', 'skills', '--out', 'again.lock'),
    { code: 0, stdout: 'again.lock: 2 skills\n', stderr: '' })
  t.equal(fs.readFileSync(join(cwd, 'again.lock'), 'utf8'), text)
  fs.writeFileSync(join(cwd, 'skills/one/SKILL.md'), skillText('one', 'changed'))
  fs.rmSync(join(cwd, 'skills/two'), { recursive: true })
  t.equal((await run(cwd, 'lock', 'skills', 'more')).stdout,
    'changed  "one"\nadded    "three"\nremoved  "two"\nskills.lock: 2 skills\n')
  t.match(fs.readFileSync(join(cwd, 'skills.lock'), 'utf8'),
    /^"one": \["sha256:[0-9a-f]{64}","sha256:[0-9a-f]{64}"\]$/m)
  const both = fs.readFileSync(join(cwd, 'skills.lock'), 'utf8')
  t.equal((await run(cwd, 'lock', 'more', 'skills')).stdout, 'skills.lock: 2 skills\n')
  t.equal(fs.readFileSync(join(cwd, 'skills.lock'), 'utf8'), both, 'the order of folders makes no difference')
  t.equal((await run(cwd, 'lock', 'skills')).stdout, 'changed  "one"\nremoved  "three"\nskills.lock: 1 skill\n',
    'one revision less')
  t.strictSame(fs.readdirSync(cwd).sort(), ['again.lock', 'more', 'skills', 'skills.lock'])
})

t.test('K95: lock overwrites nothing but a lock', async (t) => {
  const files = { 'notes.txt': 'years of work\n', 'list.yaml': 'a: b\n', binary: Buffer.from([0xff, 0]) }
  const cwd = t.testdir({ skills: skills('one'), ...files })
  for (const [name, content] of Object.entries(files)) {
    const stderr = /is not (?:a lock: remove it|UTF-8)/
    t.match(await run(cwd, 'lock', '--out', name), { code: 1, stdout: '', stderr }, name)
    t.strictSame(fs.readFileSync(join(cwd, name)), Buffer.from(content), name)
  }
  t.match(await run(cwd, 'lock', '--out', 'skills'), { code: 1, stderr: /--out: .* cannot be written/ })
  await run(cwd, 'lock')
  fs.appendFileSync(join(cwd, 'skills.lock'), '<<<<<<< HEAD\n')
  t.match(await run(cwd, 'lock'), { code: 0 }, 'a lock with the conflict of a merge')
  fs.writeFileSync(join(cwd, 'empty.lock'), '')
  t.match(await run(cwd, 'lock', '--out', 'empty.lock'), { code: 0 }, 'an empty file')
})

t.test('K83, K95: lock takes the sources of a configuration file, alone or with folders', async (t) => {
  const cwd = t.testdir({
    skills: skills('one'),
    team: skills('two'),
    'skillserve.yaml': 'sources:\n  - { name: team, folder: ./team, layout: tree }\n'
  })
  t.strictSame(await run(cwd, 'lock', '--config', 'skillserve.yaml'),
    { code: 0, stdout: 'skills.lock: 1 skill\n', stderr: '' })
  t.match(fs.readFileSync(join(cwd, 'skills.lock'), 'utf8'), /^"two": sha256:/m)
  t.strictSame(await run(cwd, 'lock', 'skills', '--config', 'skillserve.yaml'),
    { code: 0, stdout: 'added    "one"\nskills.lock: 2 skills\n', stderr: '' })
  t.match(await run(cwd, 'lock', '--config', 'missing.yaml'), { code: 1, stderr: /missing\.yaml/ })
})

t.test('K86: --layout is one search for validate, lock, verify, export, dev and serve --locked', async (t) => {
  const cwd = t.testdir({ repo: { '.claude': { skills: skills('agent') }, deep: { er: skills('nested') } } })
  for (const [layout, name, path] of [['auto', 'agent', '.claude/skills/agent'],
    ['tree', 'nested', 'deep/er/nested']] as const) {
    const call = async (...args: string[]) =>
      await run(cwd, ...args, '--layout', layout, '--state-dir', `state-${layout}`)
    const { stdout } = await call('validate', 'repo', '--format', 'json')
    t.match(JSON.parse(stdout), { skills: [{ skill_name: name, path: `repo/${path}` }], totals: { skills: 1 } }, layout)
    t.match(await call('lock', 'repo', '--out', `${layout}.lock`), { code: 0, stdout: `${layout}.lock: 1 skill\n` })
    t.match(await call('verify', 'repo', '--locked', `${layout}.lock`), { code: 0, stdout: `ok       "${name}"` })
    t.match(await call('export', `./${layout}`, 'repo'), { code: 0 })
    t.ok(fs.existsSync(join(cwd, `${layout}/.well-known/agent-skills/index.json`)))
    if (layout === 'auto') continue
    const args = ['repo', '--locked', `${layout}.lock`, '--layout', layout]
    const { url } = await startProcess(t, { cwd, args, env: { STATE_DIR: join(cwd, `serve-${layout}`) } })
    await until(async () =>
      JSON.stringify(await (await fetch(`${url}/skills`)).json()) === JSON.stringify({ skills: [name] }), 20_000)
    const preview = launch(t, {
      cwd, args: ['dev', 'repo', '--no-open', '--port', '0', '--layout', layout, '--state-dir', `dev-${layout}`]
    })
    await preview.printed(new RegExp(`^${name}: `, 'm'))
    t.equal(
      preview.stdout().split('\n').filter((line) => line.includes(': about ') || line.includes(': nothing ')).length,
      1, layout)
    process.kill(preview.pid)
    t.match(await preview.ended, { code: 0 })
  }
})

t.test('K4, K95: lock, sign, verify and export name a link that leads out, and --allow-links takes it', async (t) => {
  const { privatePem, publicPem } = makeKeyPair()
  const cwd = t.testdir({
    real: skills('linked'),
    skills: { ...skills('one'), linked: t.fixture('symlink', '../real/linked') },
    key: privatePem,
    'acme.pem': publicPem,
    'trust.yaml': 'signers:\n  - { name: acme, key: acme.pem }\n'
  })
  const skipped = "skillserve: 'linked' is skipped, since the link leads out of the folder: --allow-links " +
    `${join(cwd, 'real/linked')} allows it\n`
  const verify = ['verify', 'skills', '--trust', 'trust.yaml']
  const allowed = ['--allow-links', 'real']
  for (const { argv, one, both } of [
    { argv: ['sign', 'skills', '--key', 'key'], one: 'signed  "one"\n', both: 'signed  "linked"\nsigned  "one"\n' },
    { argv: verify, one: 'ok       "one"  acme\n', both: 'ok       "linked"  acme\nok       "one"     acme\n' },
    { argv: ['lock', 'skills'], one: /: 1 skill\n$/, both: /: 2 skills\n$/ },
    { argv: ['lock', 'skills', '--layout', 'tree'], one: /: 1 skill\n$/, both: /: 2 skills\n$/ },
    { argv: ['export', 'out', 'skills'], one: /^1 skill in /, both: /^2 skills in / }
  ]) {
    const stderr = argv.includes('tree') ? '' : skipped
    t.match(await run(cwd, ...argv), { code: 0, stdout: one, stderr }, argv.join(' '))
    t.match(await run(cwd, ...argv, ...allowed), { code: 0, stdout: both, stderr: '' }, argv.join(' '))
  }
  t.equal((await run(cwd, 'verify', 'skills/one', '--trust', 'trust.yaml')).stderr, '',
    'nothing of other skills of its folder')
  t.match(await run(cwd, 'verify', 'skills/linked', '--trust', 'trust.yaml', ...allowed), { code: 0 })
  t.match(await run(cwd, ...verify, '--allow-links', 'out'), { code: 0, stderr: skipped }, 'another folder')
  const state = ['--state-dir', 'real/state', 'git+file:///nowhere', ...allowed]
  t.match(await run(cwd, 'lock', ...state),
    { code: 1, stderr: /"[^"]*real\/state" is inside "[^"]*real", whose files are served/ },
    'a state folder among files that links lead to')
  fs.rmSync(join(cwd, 'skills/one'), { recursive: true })
  t.match(await run(cwd, 'lock', 'skills'),
    { code: 1, stderr: `${skipped}skillserve: 'skills' has no skills: no folder in it has a SKILL.md\n` })
})

/** Runs a command as a user who may not read everything, although the tests may run as root. */
async function runAsNobody (cwd: string, argv: readonly string[]) {
  const isRoot = process.getuid?.() === 0
  if (isRoot) process.seteuid?.(65_534)
  try {
    return await run(cwd, ...argv)
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
}

t.test('K93 K95: with something that may not be read nothing is locked, signed or exported', async (t) => {
  for (const [argv, hidden, line] of [
    [['lock', 'skills'], 'skills/two/refs', 'the skill "two" cannot be locked: '],
    [['sign', 'skills', '--key', 'key.pem'], 'skills/two/refs/secret.md', 'the skill "two" cannot be signed: '],
    [['export', 'out', 'skills'], 'skills', 'Permission denied reading skills folder']
  ] as const) {
    const cwd = t.testdir({ skills: skills('one', 'two'), 'key.pem': makeKeyPair().privatePem })
    fs.mkdirSync(join(cwd, 'skills/two/refs'))
    fs.writeFileSync(join(cwd, 'skills/two/refs/secret.md'), 'text')
    for (const folder of ['', 'skills', 'skills/one', 'skills/two']) fs.chmodSync(join(cwd, folder), 0o777)
    fs.chmodSync(join(cwd, hidden), 0)
    const { code, stdout, stderr } = await runAsNobody(cwd, argv)
    fs.chmodSync(join(cwd, hidden), 0o755)
    t.strictSame([code, stdout], [1, ''], hidden)
    t.match(stderr, `skillserve: ${line}`)
    t.match(stderr, hidden.replace('skills/two/', ''))
    t.strictSame(fs.readdirSync(cwd).sort(), ['key.pem', 'skills'])
    t.strictSame(fs.readdirSync(join(cwd, 'skills/one')), ['SKILL.md'])
  }
})

t.test('K64, K95: a service serves what its lock names, of each folder to those who see it, and follows the file',
  async (t) => {
    const [all, team] = [newSecret('all', 'groups: [all]'), newSecret('team', 'groups: [team]')]
    const rules = 'rules:\n  - { groups: [all] }\n  - { groups: [team], roots: [team] }\n'
    const cwd = t.testdir({
      common: { guide: { 'SKILL.md': skillText('guide', 'common') }, two: skill('two') },
      team: { guide: { 'SKILL.md': skillText('guide', 'team') } },
      'access.yaml': `tokens:\n  - ${all.entry}\n  - ${team.entry}\n${rules}`
    })
    const lock = async () => { t.match(await run(cwd, 'lock', 'common', 'team'), { code: 0, stdout: ': 2 skills\n' }) }
    await lock()
    fs.writeFileSync(join(cwd, 'common/two/SKILL.md'), skillText('two', 'canary'))
    const service = await startProcess(t, {
      cwd, args: ['./common', './team', '--locked', '--access', 'access.yaml'], env: { STATE_DIR: 'state' }
    })
    const get = async (path: string, { text } = all) =>
      await fetch(`${service.url}${path}`, { headers: { authorization: `Bearer ${text}` } })
    t.strictSame(await (await get('/skills')).json(), { skills: ['guide'] })
    for (const [caller, body] of [[all, 'common'], [team, 'team']] as const) {
      t.match(await (await get('/skills/guide', caller)).json(), { documentation: skillText('guide', body) })
    }
    t.equal((await get('/skills/two')).status, 404)
    t.match(await (await get('/readyz')).json(), { status: 'ready', quarantined: { count: 1 } })
    t.match(await (await get('/catalog/guide')).json(), { trust: { pinned: true, status: null, signer: null } })
    await service.printed("skill 'two' is quarantined")
    const msg = /^skill 'two' is quarantined: the skill has the revision sha256:/
    t.match(service.log().find(({ skill }) => skill === 'two'), { msg, code: 'pin_mismatch', root: 'common' })
    await lock()
    await until(async () => (await get('/skills/two')).status === 200)
    fs.writeFileSync(join(cwd, 'skills.lock'), '# Reviewed revisions of skills.\none: latest\n')
    await service.printed('the last good one stays in force')
    t.equal((await get('/skills/two')).status, 200)
    const ready = async () => await (await get('/readyz')).text()
    t.match(await ready(),
      /"status":"ready","detail":"the lock cannot be used, so the last good one stays in force; the log says why"/)
    await lock()
    await until(async () => !(await ready()).includes('detail'))
    await service.stop()
  })

t.test('K95: verify fails for a skill that the lock names and no folder has', async (t) => {
  const cwd = t.testdir({ common: skills('one', 'two'), team: skills('three') })
  t.equal((await run(cwd, 'lock', 'common', 'team')).code, 0)
  const locked = ['--locked', 'skills.lock']
  t.strictSame(await run(cwd, 'verify', 'common', 'team', ...locked),
    { code: 0, stderr: '', stdout: 'ok       "one"    -\nok       "two"    -\nok       "three"  -\n' })
  t.strictSame(await run(cwd, 'verify', 'common/one', ...locked),
    { code: 0, stderr: '', stdout: 'ok       "one"  -\n' }, 'a single skill stands for itself')
  fs.rmSync(join(cwd, 'common/two'), { recursive: true })
  t.strictSame(await run(cwd, 'verify', 'common', 'team', ...locked), {
    code: 1,
    stderr: '',
    stdout: 'ok       "one"    -\nok       "three"  -\nrefused  "two"    -  the skill ' +
      'is in the lock, but in no folder\n'
  })
  t.match(JSON.parse((await run(cwd, 'verify', 'common', ...locked, '--json')).stdout),
    { skills: [{ name: 'one', ok: true }, { name: 'three', ok: false }, { name: 'two', ok: false }] })
})

/** Two skills, a key, and a trust file in a folder of its own. */
function world (t: Test, trust = ''): string {
  const { privatePem, publicPem } = makeKeyPair('P-384')
  return t.testdir({
    skills: skills('one', 'two'),
    'private.pem': privatePem,
    trust: { 'acme.pem': publicPem, 'trust.yaml': `signers:\n  - { name: acme, key: acme.pem }\n${trust}` }
  })
}

t.test('K95: sign and verify a skill or a folder of them, with exit codes for CI', async (t) => {
  const cwd = world(t)
  t.strictSame(await run(cwd, 'sign', 'skills/one', '--key', 'private.pem'),
    { code: 0, stdout: 'signed  "one"\n', stderr: '' })
  t.strictSame(await run(cwd, 'verify', 'skills', '--trust', 'trust/trust.yaml'), {
    code: 1,
    stderr: '',
    stdout: 'ok       "one"  acme\nrefused  "two"  -     the skill has no signature ' +
      '(skill.oms.sig)\n'
  })
  t.strictSame(await run(cwd, 'verify', 'skills/one', '--trust', 'trust/trust.yaml'),
    { code: 0, stderr: '', stdout: 'ok       "one"  acme\n' })
  t.equal((await run(cwd, 'sign', 'skills', '--key', 'private.pem')).stdout, 'signed  "one"\nsigned  "two"\n')
  const { code, stdout } = await run(cwd, 'verify', 'skills', '--trust', 'trust/trust.yaml', '--json')
  t.equal(code, 0)
  t.match(JSON.parse(stdout), {
    skills: [{ name: 'one', ok: true, signed: true, signer: 'acme', status: 'valid', pinned: null, problem: '' },
      { name: 'two' }]
  })
  t.strictSame(fs.readdirSync(join(cwd, 'skills/one')), ['SKILL.md', 'skill.oms.sig'])
})

t.test('K19, K95: a skill with links to its own files is valid once it is signed, and links are not ' +
  'written through', async (t) => {
  const cwd = world(t)
  fs.symlinkSync('SKILL.md', join(cwd, 'skills/one/again.md'))
  fs.symlinkSync('SKILL.md', join(cwd, 'skills/one/skill.oms.sig'))
  const trust = ['--trust', 'trust/trust.yaml']
  t.equal((await run(cwd, 'sign', 'skills', '--key', 'private.pem')).code, 0)
  t.strictSame(await run(cwd, 'verify', 'skills', ...trust),
    { code: 0, stderr: '', stdout: 'ok       "one"  acme\nok       "two"  acme\n' })
})

/** A command that fails, and what it says. */
interface Refused {
  readonly argv: readonly string[]
  /** Default: 1. */
  readonly code?: number
  readonly stderr: RegExp
}

t.test('K82, K95: what cannot be read or written is one line that names it, and nothing is left behind', async (t) => {
  const cwd = world(t)
  for (const folder of ['empty', 'links', 'skills/one/skill.oms.sig']) fs.mkdirSync(join(cwd, folder))
  for (const [link, target] of [['links/linked', '../skills/two'], ['circle', 'circle']] as const) {
    fs.symlinkSync(target, join(cwd, link))
  }
  for (const [file, text] of [['file', ''], ['broken', 'one: latest']] as const) fs.writeFileSync(join(cwd, file), text)
  execFileSync('mkfifo', [join(cwd, 'pipe')])
  const before = fs.readdirSync(cwd, { recursive: true })
  const [key, trust] = [['--key', 'private.pem'], ['--trust', 'trust/trust.yaml']]
  const noPrivateKey = /--key must be a private key in PEM without a password$/
  const noSkills = /'empty' has no skills: no folder in it has a SKILL\.md$/
  const isFolder = /--locked[^\n]* takes a file, and \S+skills is a folder: write folders before the flag$/
  const settings = ['ACCESS_FILE or --access', 'TRUST_FILE or --trust', 'CONFIG_FILE or --config']
  const missing = settings.flatMap((name): readonly Refused[] => {
    const stderr = new RegExp(`${name}: ${join(cwd, 'none')} cannot be read: ENOENT: no such file or directory$`)
    const flags = [name.replace(/.* /, ''), 'none']
    return [{ argv: ['export', 'out', 'skills', ...flags], stderr }, { argv: ['skills', ...flags], stderr }]
  })
  for (const { argv, code = 1, stderr } of [
    { argv: ['lock', 'skills', './missing'], stderr: /'\.\/missing' does not exist: give a folder of skills/ },
    { argv: ['lock', 'empty'], stderr: noSkills },
    { argv: ['lock', 'skills', '--out', 'missing/x.lock'], stderr: /--out: \S*x\.lock cannot be written \(ENOENT: / },
    { argv: ['lock', 'skills', '--out', 'empty'], stderr: /--out: \S*empty cannot be written \(EISDIR: .*\)$/ },
    { argv: ['lock', 'skills', '--out', 'pipe'], stderr: /--out: \S*pipe cannot be written \(it is not a regular/ },
    { argv: ['export', 'circle/out', 'skills'], stderr: /export: "circle\/out" cannot be written \(ELOOP: .*\): name/ },
    { argv: ['export', 'file/out', 'skills'], stderr: /export: "file\/out" cannot be written \(ENOTDIR: not a dir/ },
    { argv: ['export', 'file', 'skills'], stderr: /export: "file" cannot be written \(ENOTDIR: not a directory\)/ },
    { argv: ['sign', 'skills', ...key], stderr: /\/skills\/one\/skill\.oms\.sig cannot be written \(EISDIR: / },
    { argv: ['sign', 'skills'], code: 2, stderr: /required option '--key <FILE>' not specified$/ },
    { argv: ['sign', ...key], code: 2, stderr: /missing required argument 'DIR'/ },
    { argv: ['sign', 'skills', '--key', 'trust/acme.pem'], stderr: noPrivateKey },
    { argv: ['sign', 'skills', '--key', '/dev/zero'], stderr: noPrivateKey },
    { argv: ['sign', 'skills', '--key', 'missing.pem'], stderr: /missing\.pem cannot be read: ENOENT: no such file/ },
    { argv: ['sign', 'empty', ...key], stderr: noSkills },
    { argv: ['sign', 'skills', ...key, '--chain', 'trust/acme.pem'], stderr: /--chain must hold certificates in PEM$/ },
    { argv: ['verify', 'empty', ...trust], stderr: noSkills },
    { argv: ['verify', 'skills'], stderr: /verify needs --trust FILE or --locked FILE$/ },
    { argv: ['verify', 'private.pem', ...trust], stderr: /'private\.pem' is not a SKILL\.md: give a folder/ },
    { argv: ['verify', 'skills', '--locked', 'skills'], stderr: isFolder },
    { argv: ['--locked', 'skills'], stderr: isFolder },
    { argv: ['skills', '--locked=broken'], stderr: /broken:1: one must be a revision/ },
    {
      argv: ['skills', '--locked'],
      stderr: /^skillserve: LOCKED or --locked: \S*skills\.lock cannot be read: ENOENT: no such file or directory$/
    },
    ...missing
  ]) {
    const ended = await run(cwd, ...argv)
    t.match(ended, { code, stdout: '', stderr: /^skillserve: [^\n]+\n$/ }, argv.join(' '))
    t.match(ended.stderr.trimEnd(), stderr, argv.join(' '))
  }
  t.strictSame(fs.readdirSync(cwd, { recursive: true }), before)
  t.match(await run(cwd, 'sign', 'links/linked', ...key), { code: 0 }, 'a skill that is named by itself may be a link')
})

t.test('K95: a trust file that cannot be used is one line with its file, line and key', async (t) => {
  for (const [text, message] of [
    ['roots: { other: require }',
      /trust\.yaml:3: roots\.other is not the name of a folder of skills: there is only "skills"$/m],
    ['roots: { skill: require }',
      /trust\.yaml:3: roots\.skill is not the name of a folder of skills: there is .*, did you mean "skills"\?$/m],
    ['roots: { skills: maybe }', /trust\.yaml:3: roots\.skills must be one of report, require$/m],
    ['deny: [acmee]',
      /trust\.yaml:3: deny\[0\] is neither a revision nor the name of a signer, did you mean "acme"\?$/m],
    ['deny: [nobody]', /trust\.yaml:3: deny\[0\] is neither a revision nor the name of a signer$/m],
    ['trusted: yes', /trust\.yaml:3: trusted is an unknown key; allowed: signers, roots, deny, scans$/m],
    ['  - { name: x }', /trust\.yaml:3: signers\[1\] needs either key or root$/m],
    ['  - { name: x, key: missing.pem }',
      /trust\.yaml:3: signers\[1\]\.key names a file that cannot be read: ENOENT: no such file or directory$/m],
    ['  - { name: x, key: ../private.pem }',
      /trust\.yaml:3: signers\[1\]\.key must name a PEM file with a P-256, P-384 or P-521 public key$/m],
    ['  - { name: x, root: acme.pem }', /trust\.yaml:3: signers\[1\]\.root must name a PEM file with certificates$/m]
  ] as const) {
    const ended = await run(world(t, text), 'export', 'out', 'skills', '--trust', 'trust/trust.yaml')
    t.match(ended, { code: 1, stderr: message }, text)
  }
})

t.test('K95: a service reports or requires, denies at once, and keeps the last good trust file', async (t) => {
  const cwd = world(t)
  await run(cwd, 'sign', 'skills/one', '--key', 'private.pem')
  const file = join(cwd, 'trust/trust.yaml')
  const signers = fs.readFileSync(file, 'utf8')
  const service = await startProcess(t, {
    cwd,
    env: {
      TRUST_FILE: 'trust/trust.yaml', AUDIT_LOG: join(cwd, 'audit.jsonl'), STATE_DIR: join(cwd, 'state')
    }
  })
  const audited = () =>
    fs.readFileSync(join(cwd, 'audit.jsonl'), 'utf8').trim().split('\n').map((line) =>
      JSON.parse(line) as Record<string, unknown>).filter(({ event }) =>
      /skill\.(?:quarantined|released)/.test(String(event)))
  const entry = async (name: string) => {
    const response = await fetch(`${service.url}/catalog/${name}`)
    return response.status === 200
      ? await response.json() as { readonly trust: unknown, readonly findings: unknown }
      : response.status
  }
  t.match(await entry('one'), { trust: { signed: true, signer: 'acme', status: 'valid', pinned: null } })
  t.match(await entry('two'), {
    trust: { signed: false, signer: null, status: 'unsigned' }, findings: [{ code: 'unsigned' }]
  })

  fs.writeFileSync(file, `${signers}roots: { skills: require }\n`)
  await until(async () => await entry('two') === 404)
  t.match(await entry('one'), { trust: { status: 'valid' } })
  t.match(await (await fetch(`${service.url}/readyz`)).json(),
    { quarantined: { count: 1, first: [{ name: 'two', root: 'skills', code: 'unsigned' }] } })
  fs.writeFileSync(file, 'signers: maybe\n')
  await service.printed('the trust file cannot be used; the last good one stays in force')
  t.equal(await entry('two'), 404, 'what is broken widens nothing')
  t.match(await (await fetch(`${service.url}/readyz`)).json(),
    { status: 'ready', detail: /^the trust file cannot be used, so/ })

  fs.writeFileSync(join(cwd, 'skills/one/SKILL.md'), skillText('one', 'changed'))
  await until(async () => await entry('one') === 404)
  await service.printed(/'SKILL\.md' changed after acme signed the skill/)
  await run(cwd, 'sign', 'skills', '--key', 'private.pem')
  await until(async () => await entry('one') !== 404 && await entry('two') !== 404)
  t.match(await entry('one'), { trust: { status: 'valid' } })
  t.match(await entry('two'), { trust: { status: 'valid' } })

  await until(() => audited().length >= 4)
  t.match(audited(), [
    {
      event: 'skill.quarantined',
      outcome: 'denied',
      target: {
        skill: 'two', root: 'skills', code: 'unsigned', revision: /^sha256:/
      }
    },
    {
      event: 'skill.quarantined',
      target: {
        skill: 'one', code: 'signature_stale', signer: 'acme', problem: /^'SKILL\.md' changed after/
      }
    },
    { event: 'skill.released', outcome: 'success', target: { skill: 'one', signer: 'acme' } },
    { event: 'skill.released', target: { skill: 'two' } }
  ])

  fs.writeFileSync(file, `${signers}roots: { skills: require }\n`)
  const key = fs.readFileSync(join(cwd, 'trust/acme.pem'))
  fs.writeFileSync(join(cwd, 'trust/acme.pem'), makeKeyPair().publicPem)
  await until(async () => await entry('one') === 404)
  await service.printed(/is signed by somebody who is not in the trust file/)
  fs.writeFileSync(join(cwd, 'trust/acme.pem'), key)
  await until(async () => await entry('one') !== 404)

  fs.writeFileSync(file, `${signers}deny: [acme]\n`)
  await until(async () => JSON.stringify([await entry('one'), await entry('two')]) === '[404,404]')
  t.match(await (await fetch(`${service.url}/skills`)).text(), /^\{"skills":\[\]/)
  await service.stop()
})
