import { createPublicKey, sign as signBytes, X509Certificate } from 'node:crypto'
import fs from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleToJSON } from '@sigstore/bundle'
import { DSSEBundleBuilder } from '@sigstore/sign'
import t, { type Test } from 'tap'
import { formatBundle } from '../../src/trust/bundle.ts'
import { parseScans } from '../../src/trust/scans.ts'
import { hintOf, type Signer } from '../../src/trust/signers.ts'
import {
  type KeyPair, makeKeyPair, sign, startGuarded, statementAbout, type StatementDraft, trustOf, verify
} from '../helper/signing.ts'
import { skill } from '../helper/skills.ts'

const DAY_MS = 86_400_000
const PAYLOAD_TYPE = 'application/vnd.in-toto+json'
const FOREIGN = /^the skill is signed by somebody who is not in the trust file/
const NO_LIST = /does not list files by SHA-256 as OpenSSF Model Signing/

/** A bundle by the Sigstore project's own code. */
async function sigstoreBundle (payload: Buffer, { privateKey }: KeyPair, hint: string, type = PAYLOAD_TYPE) {
  const key = { $case: 'publicKey' as const, publicKey: '', hint }
  const signer = { sign: async (data: Buffer) => ({ signature: signBytes('sha256', data, privateKey), key }) }
  const builder = new DSSEBundleBuilder({ signer, witnesses: [] })
  return JSON.stringify(bundleToJSON(await builder.create({ type, data: payload })))
}

function makeSkill (t: Test): string {
  const files = { scripts: { 'run.sh': 'echo', 'ä.txt': 'ä' }, docs: { 'a.md': 'a' } }
  return join(t.testdir({ demo: skill('demo', files) }), 'demo')
}

/** What is said so many milliseconds from now. */
async function atTime<T> (t: Test, offset: number, say: () => Promise<T>): Promise<T> {
  const time = Date.now() + offset
  const clock = t.intercept(Date, 'now', { value: () => time })
  return await say().finally(() => { clock.restore() })
}

async function statusOf (folder: string, { policy }: ReturnType<typeof trustOf>) {
  const [verified] = await verify(folder, policy)
  return [verified?.report?.status, verified?.report?.signer, verified?.problem]
}

t.test('K95: a skill that sign has signed is valid, and a bit of its signature decides', async (t) => {
  for (const curve of ['P-256', 'P-384', 'P-521']) {
    const folder = makeSkill(t)
    const key = makeKeyPair(curve)
    const trust = () => trustOf([{ key: key.publicKey }])
    t.strictSame(await statusOf(folder, trust()), ['unsigned', null, 'the skill has no signature (skill.oms.sig)'])
    await sign(folder, key)
    t.strictSame(await statusOf(folder, trust()), ['valid', 'acme', ''])
    const file = join(folder, 'skill.oms.sig')
    const bundle = JSON.parse(fs.readFileSync(file, 'utf8')) as { dsseEnvelope: { payload: string } }
    const payload = Buffer.from(bundle.dsseEnvelope.payload, 'base64').toString().replace('"demo"', '"Demo"')
    bundle.dsseEnvelope.payload = Buffer.from(payload).toString('base64')
    fs.writeFileSync(file, JSON.stringify(bundle))
    const problem = 'the signature does not match its list of files: the list was changed, or signed with another key'
    t.strictSame(await statusOf(folder, trust()), ['invalid', null, problem], curve)
  }
})

t.test('K95: bundles of the Sigstore project are valid, and what cannot be accepted is told apart', async (t) => {
  const key = makeKeyPair()
  const hint = hintOf(key.publicKey)
  const trust = () => trustOf([{ key: makeKeyPair().publicKey, name: 'other' }, { key: key.publicKey }])
  const bad = (change: (statement: StatementDraft) => void) => (folder: string) =>
    sigstoreBundle(statementAbout(folder, change), key, hint)
  type Make = (folder: string) => string | Promise<string>
  const cases: ReadonlyArray<readonly [name: string, Make, status: string, problem: RegExp]> = [
    ['with a hint', (folder) => sigstoreBundle(statementAbout(folder), key, hint), 'valid', /^$/],
    ['without', (folder) => sigstoreBundle(statementAbout(folder), key, ''), 'valid', /^$/],
    ['foreign', (folder) => sigstoreBundle(statementAbout(folder), makeKeyPair(), 'ff'), 'untrusted', FOREIGN],
    ['shards', bad(({ predicate: { serialization: how } }) => { how['method'] = 'shards' }), 'invalid', NO_LIST],
    ['old predicate', bad((statement) => { statement.predicateType = 'https://model_signing/v0.1' }), 'invalid',
      NO_LIST],
    ['hash', bad(({ predicate: { serialization: how } }) => { how['hash_type'] = 'blake3' }), 'invalid', NO_LIST],
    ['a file twice', bad(({ predicate: { resources } }) => { resources.push(...resources) }), 'invalid', /twice/],
    ['no list', bad((statement) => { statement.predicate.resources = [] }), 'invalid', NO_LIST],
    ['no statement', bad((statement) => { statement._type = 'x' }), 'invalid', NO_LIST],
    ['type', (folder) => sigstoreBundle(statementAbout(folder), key, hint, 'text/plain'), 'invalid', /not a bundle/],
    ['broken JSON', () => '{', 'invalid', /not a bundle/],
    ['null', () => 'null', 'invalid', /not a bundle/],
    ['deep JSON', () => '['.repeat(100_000), 'invalid', /not a bundle/],
    ['10 MB', () => `"${'x'.repeat(10_000_000)}"`, 'invalid', /larger than 2097152 bytes/],
    ['Sigstore keyless', async (folder) => (await sigstoreBundle(statementAbout(folder), key, hint))
      .replace(/"publicKey":\{[^}]*\}/, '"certificate":{"rawBytes":""}'), 'invalid', /keyless/],
    ['bad certificate', (folder) => {
      const rest = { signature: Buffer.alloc(8), keyHint: undefined, certificates: [Buffer.from('x')] }
      return formatBundle({ payload: statementAbout(folder), ...rest })
    }, 'invalid', /certificate that cannot be read/]
  ]
  for (const [name, bundle, status, problem] of cases) {
    const folder = makeSkill(t)
    fs.writeFileSync(join(folder, 'skill.oms.sig'), await bundle(folder))
    const [found, , sentence] = await statusOf(folder, trust())
    t.match([found, sentence], [status, problem], name)
  }
})

t.test('K95: what the format leaves out of signatures may change, and is not served', async (t) => {
  const left = { '.gitignore': 'a', '.gitattributes': 'a', '.github': { 'ci.yml': 'a' } }
  const base = t.testdir({ demo: skill('demo', { ...left, docs: { 'a.md': 'a' } }) })
  const [folder, key] = [join(base, 'demo'), makeKeyPair()]
  await sign(folder, key)
  const bundle = fs.readFileSync(join(folder, 'skill.oms.sig'), 'utf8')
  const { dsseEnvelope } = JSON.parse(bundle) as { dsseEnvelope: { payload: string } }
  const { predicate } = JSON.parse(Buffer.from(dsseEnvelope.payload, 'base64').toString()) as StatementDraft
  t.strictSame(predicate.resources.map(({ name }) => name), ['SKILL.md', 'docs/a.md'])
  const ignored = ['.git', '.gitattributes', '.github', '.gitignore', 'skill.oms.sig']
  t.strictSame(predicate.serialization['ignore_paths'], ignored)
  for (const path of ['.gitignore', '.gitattributes', '.github/ci.yml']) fs.appendFileSync(join(folder, path), 'b')
  const { policy } = trustOf([{ key: key.publicKey }], { roots: new Map([[basename(base), 'require']]) })
  t.match(await verify(folder, policy), [{ isServed: true, report: { status: 'valid' } }])
  const { skills } = await startGuarded(t, base, policy)
  const { files } = await skills.read('demo', (skill) => skill.manifest())
  t.strictSame(files.map(({ path }) => path), ['SKILL.md', 'docs/a.md', 'skill.oms.sig'])
  await t.rejects(async () => await skills.read('demo', (skill) => skill.file('.github/ci.yml')),
    { code: 'file_not_found' })
})

const FIXTURES = fileURLToPath(new URL('../fixtures/model-signing/', import.meta.url))
const fixture = (name: string): Buffer => fs.readFileSync(join(FIXTURES, name))
const keyOf = (name: string): Partial<Signer> => ({ name, key: createPublicKey(fixture(`${name}.pem`)) })
/** The signer whose certificate was issued by the second one of the chain in a signature. */
const issuerOf = (name: string): Partial<Signer> => ({ name, issuers: [certificateIn(name, 1)] })

function certificateIn (name: string, index: number): X509Certificate {
  const bundle = JSON.parse(fixture(`${name}.sig`).toString()) as {
    verificationMaterial: { x509CertificateChain: { certificates: Array<{ rawBytes: string }> } }
  }
  const { certificates } = bundle.verificationMaterial.x509CertificateChain
  return new X509Certificate(Buffer.from(certificates[index]?.rawBytes ?? '', 'base64'))
}

t.test('K95: signatures of the reference implementation, and what happens to them, are told apart', async (t) => {
  const all = [keyOf('p256'), keyOf('p384'), keyOf('p521'), issuerOf('certificate'), issuerOf('expired')]
  const write = (folder: string, path: string, text: string) => { fs.appendFileSync(join(folder, path), text) }
  const exempt = "the signature does not cover '.gitignore'"
  type Change = (folder: string) => void
  type Signers = Array<Partial<Signer>>
  type Case = readonly [string, Change | undefined, status: string, signer: string | null, problem: string, Signers?]
  const cases: readonly Case[] = [
    ...['p256', 'p384', 'p521', 'certificate'].map((name) => [name, undefined, 'valid', name, exempt] as const),
    ['p256', undefined, 'untrusted', null, 'not in the trust file', [keyOf('p384'), issuerOf('certificate')]],
    ['certificate', undefined, 'untrusted', null, 'not in the trust file', [keyOf('p256'), issuerOf('expired')]],
    ['expired', undefined, 'expired', 'expired', `which signed the skill, expired on 2025-01-01; ${exempt}`],
    ['p384', (folder) => { write(folder, 'notes.txt', '#') }, 'stale', 'p384', "'notes.txt' changed after p384"],
    ['certificate', (folder) => { write(folder, 'more.sh', '') }, 'stale', 'certificate', "'more.sh' was added after"],
    ['p521', (folder) => { fs.rmSync(join(folder, 'references/ä.md')) }, 'stale', 'p521', 'ä.md\' was removed'],
    ['p256', (folder) => {
      fs.renameSync(join(folder, 'notes.txt'), join(folder, '../notes.txt'))
      fs.symlinkSync('../notes.txt', join(folder, 'notes.txt'))
    }, 'stale', 'p256', "'notes.txt' was removed"],
    ['ignoring', undefined, 'valid', 'p256', `${exempt}, 'notes.txt'`],
    ['ignoring', (folder) => { fs.rmSync(join(folder, 'notes.txt')) }, 'valid', 'p256', exempt],
    ['ignoring', (folder) => { write(folder, '.skillignore', 'notes.txt\n.skillignore\n') }, 'valid', 'p256', exempt],
    ['shards', undefined, 'invalid', 'p256', 'does not list files by SHA-256']
  ]
  for (const [signature, change, status, signer, problem, signers = all] of cases) {
    const folder = join(t.testdir(), 'skill')
    fs.cpSync(join(FIXTURES, 'skill'), folder, { recursive: true })
    fs.writeFileSync(join(folder, 'skill.oms.sig'), fixture(`${signature}.sig`))
    change?.(folder)
    t.match(await statusOf(folder, trustOf(signers)), [status, signer, problem], `${signature} ${status}`)
  }
})

t.test('K95: results of scanners count for their revision, and refuse by severity, age and absence', async (t) => {
  const folder = join(t.testdir({ demo: skill('demo', { 'run.sh': 'echo' }) }), 'demo')
  const key = makeKeyPair()
  await sign(folder, key)
  const scanOf = (severity: string, at = new Date().toISOString()) =>
    ({ tool: 'scanner 2.1', scanned_at: at, results: [{ severity, message: 'downloads' }], note: 'is not read' })
  const validate = async (revision: string | undefined, scans: readonly object[], rules: object = {}, days = 0) => {
    const byRevision = new Map(revision === undefined ? [] : [[revision, scans as never[]]])
    const { policy } = trustOf([{ key: key.publicKey }], {
      roots: new Map([['demo', 'require']]),
      scans: { byRevision, ...rules }
    })
    const [verified] = await atTime(t, days * DAY_MS, () => verify(folder, policy))
    const { isServed, problem = '', report } = verified ?? {}
    return { isServed, problem, revision: report?.checked_revision, scans: report?.scans }
  }
  const { revision } = await validate(undefined, [])
  const other = `sha256:${'0'.repeat(64)}`
  const high = [{ tool: 'scanner 2.1', results: 1, severity: 'high' }, { severity: 'info' }]
  const empty = { ...scanOf('low'), results: [] }
  for (const [found, wanted] of [
    [await validate(undefined, []), { isServed: true, problem: '', scans: [] }],
    [await validate(other, [scanOf('critical')], { max_severity: 'low' }), { isServed: true, problem: '', scans: [] }],
    [await validate(revision, [scanOf('high'), scanOf('info')]),
      { problem: /\(high\): downloads; .*\(info\)/, scans: high }],
    [await validate(revision, [scanOf('high')], { max_severity: 'medium' }),
      { isServed: false, problem: /\(high\): downloads$/ }],
    [await validate(revision, [scanOf('medium')], { max_severity: 'medium' }), { isServed: true }],
    [await validate(undefined, [], { required: true }),
      { isServed: false, problem: 'there is no scan of this revision' }],
    // A scan without results is a scan, and no praise.
    [await validate(revision, [empty], { required: true }),
      { isServed: true, problem: '', scans: [{ severity: null }] }],
    [await validate(revision, [scanOf('low')], { required: true, max_age_days: 30 }, 31),
      { isServed: false, scans: [] }]
  ]) t.match(found, wanted)
  const text = (at: string) => JSON.stringify({ 'sha256:1': [scanOf('low'), scanOf('critical', at)] }, undefined, 1)
  const message = /^scans\.json:\d+: "?sha256:1"?\[1\]\.scanned_at must be a date, or a date and time in UTC$/
  for (const at of ['2026-13-01', '2026-11-20T10Z', '2026-11-20T25:00:00Z', '2026-11-20T10:00']) {
    t.throws(() => parseScans('scans.json', text(at)), { message }, at)
  }
  for (const at of ['2026-11-20', '2026-11-20T10:00Z']) t.equal(parseScans('scans.json', text(at)).size, 1)
})
