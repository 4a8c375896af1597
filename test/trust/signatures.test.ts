import { spawnSync } from 'node:child_process'
import { createPrivateKey, sign as signBytes, type X509Certificate } from 'node:crypto'
import fs from 'node:fs'
import { basename, join } from 'node:path'
import { bundleToJSON } from '@sigstore/bundle'
import { DSSEBundleBuilder } from '@sigstore/sign'
import t, { type Test } from 'tap'
import { formatBundle, signedBytes } from '../../src/trust/bundle.ts'
import { type Authority, type KeyPair, makeAuthority, makeKeyPair, sign, statementAbout, type StatementDraft, trustOf, verify } from '../helper/signing.ts'
import { startGuarded } from '../helper/verified.ts'
import { skill } from '../helper/skills.ts'

const YEAR_MS = 365 * 86_400_000

/** A bundle by the Sigstore project's own code. */
async function sigstoreBundle (payload: Buffer, { privateKey }: KeyPair, hint: string, type = 'application/vnd.in-toto+json'): Promise<string> {
  const builder = new DSSEBundleBuilder({
    signer: { sign: async (data) => ({ signature: signBytes('sha256', data, privateKey), key: { $case: 'publicKey', publicKey: '', hint } }) },
    witnesses: []
  })
  return JSON.stringify(bundleToJSON(await builder.create({ type, data: payload })))
}

function makeSkill (t: Test): string {
  return join(t.testdir({ demo: skill('demo', { scripts: { 'run.sh': 'echo', 'ä.txt': 'ä' }, docs: { 'a.md': 'a' } }) }), 'demo')
}

async function statusOf (folder: string, trust: ReturnType<typeof trustOf>): Promise<readonly [status: string | null | undefined, signer: string | null | undefined, problem: string | undefined]> {
  const [verified] = await verify(folder, trust.policy)
  return [verified?.report?.status, verified?.report?.signer, verified?.problem]
}

for (const curve of ['P-256', 'P-384', 'P-521']) {
  t.test(`K95: a skill that sign has signed with ${curve} is valid, and a bit of its signature decides`, async (t) => {
    const folder = makeSkill(t)
    const key = makeKeyPair(curve)
    const trust = () => trustOf([{ key: key.publicKey }])
    t.strictSame(await statusOf(folder, trust()), ['unsigned', null, 'the skill has no signature (skill.oms.sig)'])
    await sign(folder, key)
    t.strictSame(await statusOf(folder, trust()), ['valid', 'acme', ''])
    const file = join(folder, 'skill.oms.sig')
    const bundle = JSON.parse(fs.readFileSync(file, 'utf8')) as { dsseEnvelope: { payload: string } }
    bundle.dsseEnvelope.payload = Buffer.from(Buffer.from(bundle.dsseEnvelope.payload, 'base64').toString().replace('"demo"', '"Demo"')).toString('base64')
    fs.writeFileSync(file, JSON.stringify(bundle))
    t.strictSame(await statusOf(folder, trust()), ['invalid', null, 'the signature does not belong to the list of files that it comes with'])
  })
}

t.test('K95: bundles of the Sigstore project are valid, whatever of the format is optional', async (t) => {
  const folder = makeSkill(t)
  const key = makeKeyPair()
  const trust = () => trustOf([{ key: makeKeyPair().publicKey, name: 'other' }, { key: key.publicKey }])
  const hint = (await import('../../src/trust/signers.ts')).hintOf(key.publicKey)
  for (const each of [hint, '']) {
    fs.writeFileSync(join(folder, 'skill.oms.sig'), await sigstoreBundle(statementAbout(folder), key, each))
    t.strictSame(await statusOf(folder, trust()), ['valid', 'acme', ''])
  }
})

t.test('K95: what cannot be accepted is told apart', async (t) => {
  const key = makeKeyPair()
  const { hintOf } = await import('../../src/trust/signers.ts')
  const hint = hintOf(key.publicKey)
  const bad = (change: (statement: StatementDraft) => void) => (folder: string) => sigstoreBundle(statementAbout(folder, change), key, hint)
  const cases: ReadonlyArray<readonly [name: string, bundle: (folder: string) => string | Promise<string>, status: string, problem: RegExp]> = [
    ['foreign', (folder) => sigstoreBundle(statementAbout(folder), makeKeyPair(), 'ff'), 'untrusted', /^the skill is signed by somebody who is not in the trust file$/],
    ['shards', bad(({ predicate }) => { predicate.serialization = { ...predicate.serialization, method: 'shards', shard_size: 5 } }), 'invalid', /lists files by shards/],
    ['old predicate', bad((statement) => { statement.predicateType = 'https://model_signing/Digests/v0.1' }), 'invalid', /statement of another kind \(https:\/\/model_signing\/Digests\/v0\.1\)/],
    ['another hash', bad(({ predicate }) => { predicate.serialization['hash_type'] = 'blake3' }), 'invalid', /not SHA-256/],
    ['a file twice', bad(({ predicate }) => { predicate.resources.push(...predicate.resources.slice(0, 1)) }), 'invalid', /twice/],
    ['no list', bad((statement) => { statement.predicate.resources = [] }), 'invalid', /holds no list of files/],
    ['no statement', bad((statement) => { statement._type = 'x' }), 'invalid', /no in-toto statement/],
    ['another payload', (folder) => sigstoreBundle(statementAbout(folder), key, hint, 'text/plain'), 'invalid', /not a bundle/],
    ['broken JSON', () => '{', 'invalid', /not a bundle/],
    ['null', () => 'null', 'invalid', /not a bundle/],
    ['deep JSON', () => '['.repeat(100_000), 'invalid', /not a bundle/],
    ['10 MB', () => `"${'x'.repeat(10_000_000)}"`, 'invalid', /larger than 2097152 bytes/],
    ['Sigstore keyless', async (folder) => (await sigstoreBundle(statementAbout(folder), key, hint)).replace(/"publicKey":\{[^}]*\}/, '"certificate":{"rawBytes":""}'), 'invalid', /short-lived certificates/],
    ['bad certificate', (folder) => formatBundle({ payload: statementAbout(folder), signature: Buffer.alloc(8), keyHint: undefined, certificates: [Buffer.from('x')] }), 'invalid', /certificate that cannot be read/]
  ]
  for (const [name, bundle, status, problem] of cases) {
    const folder = makeSkill(t)
    fs.writeFileSync(join(folder, 'skill.oms.sig'), await bundle(folder))
    const [found, , sentence] = await statusOf(folder, trustOf([{ key: key.publicKey }]))
    t.equal(found, status, name)
    t.match(sentence, problem, name)
  }
})

t.test('K95: files that changed, came, went or became links since are named', async (t) => {
  const key = makeKeyPair()
  const cases: ReadonlyArray<readonly [change: (folder: string) => void, problem: RegExp]> = [
    [(folder) => { fs.appendFileSync(join(folder, 'scripts/run.sh'), ' ') }, /^'scripts\/run\.sh' changed after acme signed the skill$/],
    [(folder) => { fs.writeFileSync(join(folder, 'new.md'), '') }, /^'new\.md' came after acme signed/],
    [(folder) => { fs.rmSync(join(folder, 'docs/a.md')) }, /^'docs\/a\.md' went away/],
    [(folder) => {
      fs.renameSync(join(folder, 'docs/a.md'), join(folder, '../a.md'))
      fs.mkdirSync(join(folder, '.git'))
      fs.renameSync(join(folder, '../a.md'), join(folder, 'scripts/b'))
      fs.symlinkSync('../scripts/b', join(folder, 'docs/a.md'))
    }, /^'scripts\/b' came after/]
  ]
  for (const [change, problem] of cases) {
    const folder = makeSkill(t)
    await sign(folder, key)
    change(folder)
    t.match(await statusOf(folder, trustOf([{ key: key.publicKey }])), ['stale', 'acme', problem])
  }
  const folder = makeSkill(t)
  fs.writeFileSync(join(folder, 'b'), 'a')
  await sign(folder, key)
  fs.rmSync(join(folder, 'docs/a.md'))
  fs.symlinkSync('../b', join(folder, 'docs/a.md'))
  t.match(await statusOf(folder, trustOf([{ key: key.publicKey }])), ['stale', 'acme', /^a file became a symbolic link after acme/])
})

t.test('K95: what the format leaves out of signatures may change, and is not served', async (t) => {
  const base = t.testdir({ demo: skill('demo', { '.gitignore': 'a', '.gitattributes': 'a', '.github': { 'ci.yml': 'a' }, docs: { 'a.md': 'a' } }) })
  const [folder, key] = [join(base, 'demo'), makeKeyPair()]
  await sign(folder, key)
  const { dsseEnvelope } = JSON.parse(fs.readFileSync(join(folder, 'skill.oms.sig'), 'utf8')) as { dsseEnvelope: { payload: string } }
  const { predicate } = JSON.parse(Buffer.from(dsseEnvelope.payload, 'base64').toString()) as StatementDraft
  t.match(predicate, { resources: [{ name: 'SKILL.md' }, { name: 'docs/a.md' }], serialization: { ignore_paths: ['.git', '.gitattributes', '.github', '.gitignore', 'skill.oms.sig'] } })
  t.equal(predicate.resources.length, 2)
  for (const path of ['.gitignore', '.gitattributes', '.github/ci.yml']) fs.appendFileSync(join(folder, path), 'b')
  const { policy } = trustOf([{ key: key.publicKey }], { roots: new Map([[basename(base), 'require']]) })
  t.match(await verify(folder, policy), [{ isServed: true, report: { status: 'valid' } }])
  const { skills } = await startGuarded(t, base, policy)
  t.strictSame((await skills.manifest('demo')).files.map(({ path }) => path), ['SKILL.md', 'docs/a.md', 'skill.oms.sig'])
  await t.rejects(async () => await skills.readFile('demo', '.github/ci.yml'), { code: 'file_not_found' })
})

const WITH_OPENSSL = { skip: spawnSync('openssl', ['version']).status !== 0 && 'openssl is not installed' }

t.test('K95: a certificate that names a root is good only if each of its issuers is one, and has signed it', WITH_OPENSSL, async (t) => {
  const authorities = t.testdir()
  const make = (name: string, options = {}) => makeAuthority(join(authorities, name), options)
  const acme = make('acme')
  // Names the certificate between as its issuer, and is of another one with that name.
  const forged = make('forged', { more: 'authorityKeyIdentifier=none\n' })
  const [[own], [, middle]] = [forged, acme].map(({ chain }) => chain.split(/(?<=-----END CERTIFICATE-----\n)/)) as [string[], string[]]
  const folder = makeSkill(t)
  for (const [label, { leaf, chain, roots }, status] of [
    ['good', forged, 'valid'],
    ['forged', { ...forged, chain: `${own}${middle}`, roots: acme.roots }, 'untrusted'],
    ['issued by one that is no authority', make('leaf', { ca: 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,keyCertSign\n' }), 'untrusted'],
    ['issued by one that may sign no others', make('usage', { ca: 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,digitalSignature\n' }), 'untrusted']
  ] as const) {
    await sign(folder, leaf, chain)
    t.equal((await statusOf(folder, trustOf([{ roots }])))[0], status, label)
  }
})

t.test('K95: a signer is known by the root of its certificate, within its time', WITH_OPENSSL, async (t) => {
  const authorities = t.testdir()
  const acme = makeAuthority(join(authorities, 'acme'))
  const other = makeAuthority(join(authorities, 'other'))
  const server = makeAuthority(join(authorities, 'server'), { usage: 'serverAuth' })
  const folder = makeSkill(t)
  const trust = ({ roots }: { readonly roots: readonly X509Certificate[] }, years = 0, acceptsExpired = false) =>
    trustOf([{ name: 'other', roots: other.roots }, { roots, acceptsExpired }].slice(roots === other.roots ? 0 : 1), { now: () => Date.now() + years * YEAR_MS, roots: new Map([['demo', 'require']]) })
  const signWith = ({ leaf, chain }: Authority): Promise<unknown> => sign(folder, leaf, chain)

  await signWith(acme)
  t.strictSame(await statusOf(folder, trust(acme)), ['valid', 'acme', ''])
  t.match(await statusOf(folder, trust(other)), ['untrusted', null, /not in the trust file/])
  t.match(await statusOf(folder, trust(acme, 2)), ['expired', 'acme', /^the certificate of acme, which signed the skill, expired on \d{4}-\d\d-\d\d$/])
  t.match(await statusOf(folder, trust(acme, -2)), ['expired', 'acme', /is not valid before/])
  t.match(await statusOf(folder, trust(acme, 0.95)), ['valid', 'acme', /expires on/])
  t.match(await verify(folder, trust(acme, 2).policy), [{ isServed: false }])
  t.match(await verify(folder, trust(acme, 2, true).policy), [{ isServed: true, report: { status: 'expired' } }])

  await signWith(server)
  t.match(await statusOf(folder, trust(server)), ['invalid', null, /not one for signing code/])

  // A chain that names the right root and was not issued by it; a signature by another key than the leaf's.
  await sign(folder, other.leaf, other.chain)
  const payload = statementAbout(folder)
  const [leaf, middle] = acme.chain.split(/(?<=-----END CERTIFICATE-----\n)/).map((pem) => Buffer.from(pem.replace(/-----.*-----|\n/g, ''), 'base64'))
  const forged = signBytes('sha384', signedBytes(payload), createPrivateKey(other.leaf.privatePem))
  fs.writeFileSync(join(folder, 'skill.oms.sig'), formatBundle({ payload, signature: forged, keyHint: undefined, certificates: [leaf ?? Buffer.alloc(0), middle ?? Buffer.alloc(0)] }))
  t.match(await statusOf(folder, trust(acme)), ['invalid', null, /does not belong/])
  fs.writeFileSync(join(folder, 'skill.oms.sig'), formatBundle({ payload, signature: forged, keyHint: undefined, certificates: [leaf ?? Buffer.alloc(0)] }))
  t.match(await statusOf(folder, trust(acme)), ['untrusted', null, /not in the trust file/], 'without the certificate between')
})
