import fs from 'node:fs'
import { join } from 'node:path'
import { StateFolder } from '../../src/sources/publish/state-folder.ts'
import t, { type Test } from 'tap'
import { runHere } from '../helper/command-line.ts'
import { startProcess } from '../helper/process.ts'
import { makeKeyPair } from '../helper/signing.ts'
import { skillText, skills, until } from '../helper/skills.ts'

const run = async (cwd: string, ...argv: readonly string[]) => await runHere(argv, { cwd })

/** Two skills, a key, and a trust file in a folder of its own. */
function world (t: Test, trust = ''): string {
  const { privatePem, publicPem } = makeKeyPair('P-384')
  return t.testdir({
    skills: skills('one', 'two'),
    'private.pem': privatePem,
    'foreign.pem': makeKeyPair().privatePem,
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

t.test('K4, K95: --allow-links verifies the links that a service with it serves', async (t) => {
  const cwd = world(t)
  fs.mkdirSync(join(cwd, 'installed'))
  fs.symlinkSync(join(cwd, 'skills/one'), join(cwd, 'installed/one'))
  await run(cwd, 'sign', 'skills', '--key', 'private.pem')
  const trust = ['--trust', 'trust/trust.yaml']
  t.match(await run(cwd, 'verify', 'installed', ...trust),
    { code: 1, stdout: '', stderr: /'one' is left out, [^\n]*\n[^\n]*'installed' has no skills: / })
  for (const path of ['installed', 'installed/one']) {
    t.strictSame(await run(cwd, 'verify', path, ...trust, '--allow-links', 'skills'),
      { code: 0, stderr: '', stdout: 'ok       "one"  acme\n' }, path)
  }
  t.match(await run(cwd, 'verify', 'installed', ...trust, '--allow-links', 'trust'),
    { code: 1, stderr: /'one' is left out, [^\n]*\n[^\n]*'installed' has no skills: / })
})

t.test('K82, K95: what cannot be signed or verified is one line, and exit code 1; wrong use is 2', async (t) => {
  const cwd = world(t)
  fs.mkdirSync(join(cwd, 'empty'))
  fs.symlinkSync('../skills/one', join(cwd, 'empty/linked'))
  const [key, trust] = [['--key', 'private.pem'], ['--trust', 'trust/trust.yaml']]
  const noPrivateKey = /^skillserve: --key must be a private key in PEM without a password\n$/
  const noSkills = /'linked' is left out, [^\n]*\n[^\n]*'empty' has no skills: /
  for (const { argv, code = 1, stderr } of [
    { argv: ['sign', 'skills'], code: 2, stderr: /^skillserve: required option '--key <FILE>' not specified\n$/ },
    { argv: ['sign', ...key], code: 2, stderr: /missing required argument 'DIR'/ },
    { argv: ['sign', 'skills', '--key', 'trust/acme.pem'], stderr: noPrivateKey },
    { argv: ['sign', 'skills', '--key', '/dev/zero'], stderr: noPrivateKey },
    { argv: ['sign', 'skills', '--key', 'missing.pem'], stderr: /missing\.pem cannot be read: ENOENT: no such file/ },
    { argv: ['sign', 'empty', ...key], stderr: noSkills },
    { argv: ['verify', 'empty', ...trust], stderr: noSkills },
    { argv: ['sign', 'skills', ...key, '--chain', 'trust/acme.pem'], stderr: /--chain must hold certificates in PEM/ },
    { argv: ['verify', 'skills'], stderr: /verify needs --trust FILE or --locked FILE/ },
    { argv: ['verify', 'private.pem', ...trust], stderr: /'private\.pem' is not a SKILL\.md: give a folder/ }
  ]) t.match(await run(cwd, ...argv), { code, stdout: '', stderr }, argv.join(' '))
  t.notOk(fs.existsSync(join(cwd, 'skills/one/skill.oms.sig')), 'nothing was signed')
  t.match(await run(cwd, 'sign', 'empty/linked', '--key', 'private.pem'), { code: 0 },
    'a skill that is named by itself may be a link')
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
    const cwd = world(t, text)
    const { openTrust } = await import('../../src/trust/trust.ts')
    const { Sources } = await import('../../src/sources/sources.ts')
    const state = new StateFolder(undefined)
    const sources = new Sources({ state, env: {} })
    await sources.set([{ kind: 'folder', path: '/skills' }])
    await t.rejects(openTrust({ trustFile: join(cwd, 'trust/trust.yaml') }, { sources, state },
      { info () {}, warn () {} }), { message }, text)
  }
  const cwd = t.testdir({ skills: skills('one') })
  t.match(await run(cwd, '--trust', 'none.yaml'),
    { code: 1, stderr: /none\.yaml cannot be read: ENOENT: no such file or directory\n$/ })
})

t.test('K95: a service reports or requires, denies at once, and keeps the last good trust file', async (t) => {
  const cwd = world(t)
  await run(cwd, 'sign', 'skills/one', '--key', 'private.pem')
  const file = join(cwd, 'trust/trust.yaml')
  const signers = fs.readFileSync(file, 'utf8')
  fs.writeFileSync(join(cwd, 'skills/one/.gitignore'), '*.log')
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
    { status: 'ready', detail: /^the trust file cannot be used as it is/ })

  fs.writeFileSync(join(cwd, 'skills/one/SKILL.md'), skillText('one', 'changed'))
  await until(async () => await entry('one') === 404)
  await service.printed(/'SKILL\.md' changed after acme signed the skill/)
  await run(cwd, 'sign', 'skills', '--key', 'private.pem')
  await until(async () => await entry('one') !== 404 && await entry('two') !== 404)
  t.match(await entry('one'), { trust: { status: 'valid' } })
  t.match(await entry('two'), { trust: { status: 'valid' } })

  t.equal((await fetch(`${service.url}/skills/one/files/.gitignore`)).status, 404,
    'what a signature leaves out is not served')
  t.notMatch(await (await fetch(`${service.url}/skills/one/files`)).text(), 'gitignore')
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
