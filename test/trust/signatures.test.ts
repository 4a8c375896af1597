import { execFileSync, spawnSync } from 'node:child_process'
import { createPublicKey, sign as signBytes, X509Certificate } from 'node:crypto'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleToJSON } from '@sigstore/bundle'
import { dsse } from '@sigstore/core'
import { DSSEBundleBuilder } from '@sigstore/sign'
import t, { type Test } from 'tap'
import { formatBundle, PAYLOAD_TYPE } from '../../src/trust/bundle.ts'
import { parseScans } from '../../src/trust/scans.ts'
import { hintOf, type Signer } from '../../src/trust/signers.ts'
import { parseTrust } from '../../src/trust/trust-file.ts'
import {
  type KeyPair, makeKeyPair, sign, startGuarded, statementAbout, type StatementDraft, trustOf, verify
} from '../helper/signing.ts'
import { skill } from '../helper/skills.ts'

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

t.test('K95: results of scanners count for their revision, and refuse by severity and absence', async (t) => {
  const folder = join(t.testdir({ demo: skill('demo', { 'run.sh': 'echo' }) }), 'demo')
  const key = makeKeyPair()
  await sign(folder, key)
  const scanOf = (severity: string, at = '2026-11-20T10:00:00Z') =>
    ({ tool: 'scanner 2.1', scanned_at: at, results: [{ severity, message: 'downloads' }], note: 'is not read' })
  const validate = async (revision: string | undefined, scans: readonly object[], rules: object = {}) => {
    const byRevision = new Map(revision === undefined ? [] : [[revision, scans as never[]]])
    const { policy } = trustOf([{ key: key.publicKey }], {
      roots: new Map([['demo', 'require']]),
      scans: { byRevision, ...rules }
    })
    const [verified] = await verify(folder, policy)
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
      { isServed: true, problem: '', scans: [{ severity: null }] }]
  ]) t.match(found, wanted)
  const text = (at: string) => JSON.stringify({ 'sha256:1': [scanOf('low'), scanOf('critical', at)] }, undefined, 1)
  const message = /^scans\.json:\d+: "?sha256:1"?\[1\]\.scanned_at must be a date, or a date and time in UTC$/
  t.throws(() => parseScans('scans.json', text('20 November')), { message })
  t.equal(parseScans('scans.json', text('2026-11-20')).size, 1)
})

const YEAR_MS = 365 * 86_400_000
const NOT_ISSUED = / not in the trust file: the certificate of 'CN=leaf' was issued by 'CN=issuer'$/
const WITH_OPENSSL = { skip: spawnSync('openssl', ['version']).status !== 0 && 'openssl is not installed' }
const CA = 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n'

/** Runs OpenSSL in a folder. */
function runOpenssl (cwd: string, ...args: readonly string[]): void {
  execFileSync('openssl', args, { cwd, stdio: ['ignore', 'ignore', 'pipe'] })
}

function writeKey (folder: string, name: string): KeyPair {
  const key = makeKeyPair('P-384')
  fs.writeFileSync(join(folder, `${name}.key`), key.privatePem)
  return key
}

let rootFolder = ''

/** The folder of the root certificate that all authorities share. */
function sharedRoot (): string {
  if (rootFolder !== '') return rootFolder
  rootFolder = fs.mkdtempSync(join(tmpdir(), 'root-'))
  t.teardown(() => { fs.rmSync(rootFolder, { recursive: true }) })
  writeKey(rootFolder, 'root')
  const args = ['-x509', '-new', '-key', 'root.key', '-subj', '/CN=Root', '-days', '3650', '-out', 'root.pem']
  runOpenssl(rootFolder, 'req', ...args)
  return rootFolder
}

/**
 * Intermediate and leaf below the shared root, made by OpenSSL in a folder, which has `issuer.pem` and `leaf.pem`.
 * `chain` is the PEM of leaf and intermediate.
 * @param options.ca extensions of the intermediate
 * @param options.usage the key usage of the leaf; `more`: its other extensions
 */
function makeAuthority (
  folder: string,
  { usage = 'critical,digitalSignature', purpose = 'codeSigning', days = 365, ca = CA, more = '' } = {}
) {
  fs.mkdirSync(folder, { recursive: true })
  const ofLeaf = ['basicConstraints=critical,CA:FALSE', `keyUsage=${usage}`, `extendedKeyUsage=${purpose}`, more]
  const make = (name: string, issuer: string, extensions: string): KeyPair => {
    const key = writeKey(folder, name)
    fs.writeFileSync(join(folder, `${name}.ext`), extensions)
    runOpenssl(folder, 'req', '-new', '-key', `${name}.key`, '-subj', `/CN=${name}`, '-out', `${name}.csr`)
    runOpenssl(folder, 'x509', '-req', '-in', `${name}.csr`, '-CA', `${issuer}.pem`, '-CAkey', `${issuer}.key`,
      '-CAcreateserial', '-days', String(days), '-extfile', `${name}.ext`, '-out', `${name}.pem`)
    return key
  }
  make('issuer', join(sharedRoot(), 'root'), ca)
  const leaf = make('leaf', 'issuer', ofLeaf.join('\n'))
  const read = (name: string): string => fs.readFileSync(join(folder, name), 'utf8')
  const issuers = [new X509Certificate(read('issuer.pem'))]
  return { folder, issuers, chain: read('leaf.pem') + read('issuer.pem'), leaf }
}

type Authority = ReturnType<typeof makeAuthority>

/** Whether OpenSSL accepts a leaf below the issuer that is given to it alone. */
function opensslAccepts ({ folder }: Authority): boolean {
  const args = ['verify', '-x509_strict', '-partial_chain', '-trusted', 'issuer.pem', 'leaf.pem']
  return spawnSync('openssl', args, { cwd: folder }).status === 0
}

interface CertificateCase {
  readonly name: string
  readonly made?: Parameters<typeof makeAuthority>[1]
  readonly openssl: boolean
  /** What the trust file, or the check of a skill, says; undefined for a valid signature. */
  readonly problem?: RegExp
}

const CERTIFICATES: readonly CertificateCase[] = [
  { name: 'issued by the certificate in the trust file', openssl: true },
  { name: 'for any purpose', made: { purpose: 'anyExtendedKeyUsage' }, openssl: true },
  {
    name: 'a key that is not for signatures',
    made: { usage: 'critical,keyEncipherment' },
    openssl: true,
    problem: /^the signature was made with a certificate that lacks the key usage digitalSignature$/
  },
  {
    name: 'a key that is for servers',
    made: { purpose: 'serverAuth' },
    openssl: true,
    problem: /^the signature was made with a certificate that lacks the extended key usage codeSigning$/
  },
  {
    name: 'an unknown critical extension',
    made: { more: '1.2.3.4=critical,DER:0500' },
    openssl: false,
    problem: /that has the critical extension 1\.2\.3\.4, which is not supported$/
  },
  { name: 'an unknown extension', made: { more: '1.2.3.4=DER:0500' }, openssl: true },
  {
    name: 'an issuer that is no authority',
    made: { ca: 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,keyCertSign\n' },
    openssl: false,
    problem: NOT_ISSUED
  },
  {
    name: 'an issuer that may not sign certificates',
    made: { ca: 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,digitalSignature\n' },
    openssl: false,
    problem: NOT_ISSUED
  },
  { name: 'an issuer of leaves alone', made: { ca: CA.replace('TRUE', 'TRUE,pathlen:0') }, openssl: true },
  {
    name: 'an issuer for other names',
    made: { ca: `${CA}nameConstraints=critical,excluded;dirName:names\n[names]\nCN=leaf\n` },
    openssl: false,
    problem: /trust\.yaml:1: signers\[0\]\.root names a certificate that has name constraints, which are not supp/
  },
  {
    name: 'an issuer for other names, which the extension does not call critical',
    made: { ca: `${CA}nameConstraints=excluded;dirName:names\n[names]\nCN=leaf\n` },
    openssl: false,
    problem: /root names a certificate that has name constraints/
  },
  {
    name: 'an issuer with an unknown critical extension',
    made: { ca: `${CA}1.2.3.4=critical,DER:0500\n` },
    openssl: false,
    problem: /root names a certificate that has the critical extension 1\.2\.3\.4, which is not supported$/
  },
  {
    name: 'an issuer of certificates for servers',
    made: { ca: `${CA}extendedKeyUsage=serverAuth\n` },
    openssl: true,
    problem: /root names a certificate that lacks the extended key usage codeSigning$/
  }
]

t.test('K95: a certificate that OpenSSL refuses, or that is not for code, is refused', WITH_OPENSSL, async (t) => {
  const folder = t.testdir({ demo: skill('demo') })
  for (const [index, { name, made, openssl, problem = /^$/ }] of CERTIFICATES.entries()) {
    const authority = makeAuthority(join(folder, `authority-${index}`), made)
    await sign(join(folder, 'demo'), authority.leaf, authority.chain)
    t.equal(opensslAccepts(authority), openssl, `OpenSSL: ${name}`)
    t.match(await checked(join(folder, 'demo'), authority), problem, name)
  }
})

/** What is wrong with a trust file that names the issuer, or with the skill under it. */
async function checked (skill: string, { folder }: Authority): Promise<string> {
  const text = 'signers: [{ name: acme, root: issuer.pem }]'
  try {
    const { signers } = await parseTrust(join(folder, 'trust.yaml'), text)
    const [verified] = await verify(skill, trustOf(signers).policy)
    return verified?.problem ?? 'the skill was not checked'
  } catch (error) {
    return String(error)
  }
}

t.test('K95: the trust file names the issuer of a certificate, or the certificate', WITH_OPENSSL, async (t) => {
  const folder = t.testdir({ demo: skill('demo') })
  const make = (name: string, options = {}) => makeAuthority(join(folder, name), options)
  const [acme, other] = [make('acme'), make('other', { more: 'authorityKeyIdentifier=none' })]
  const certificate = (folder: string, name: string) => new X509Certificate(fs.readFileSync(join(folder, name)))
  const [leaf, root] = [certificate(acme.folder, 'leaf.pem'), certificate(sharedRoot(), 'root.pem')]
  const rows = [
    { name: 'its issuer', signer: acme, issuers: acme.issuers, status: 'valid' },
    { name: 'two, and one is its issuer', signer: acme, issuers: [...other.issuers, ...acme.issuers], status: 'valid' },
    { name: 'itself', signer: acme, issuers: [leaf], status: 'valid' },
    { name: 'a certificate above its issuer', signer: acme, issuers: [root], status: 'untrusted' },
    { name: 'another one', signer: acme, issuers: other.issuers, status: 'untrusted' },
    { name: 'one with the same name as its issuer', signer: other, issuers: acme.issuers, status: 'untrusted' }
  ] as const
  for (const { name, signer, issuers, status } of rows) {
    await sign(join(folder, 'demo'), signer.leaf, signer.chain)
    const [verified] = await verify(join(folder, 'demo'), trustOf([{ issuers }]).policy)
    t.equal(verified?.report.status, status, name)
  }
  const payload = statementAbout(join(folder, 'demo'))
  const signed = dsse.preAuthEncoding(PAYLOAD_TYPE, payload)
  const signature = signBytes('sha384', signed, other.leaf.privateKey)
  const bundle = formatBundle({ payload, signature, keyHint: undefined, certificates: [leaf.raw] })
  fs.writeFileSync(join(folder, 'demo/skill.oms.sig'), bundle)
  const [verified] = await verify(join(folder, 'demo'), trustOf([{ issuers: acme.issuers }]).policy)
  t.match(verified, { report: { status: 'invalid' }, problem: /does not match its list of files/ }, 'another key')
})

t.test('K95: a certificate counts within its time and that of its issuer', WITH_OPENSSL, async (t) => {
  const folder = t.testdir({ demo: skill('demo') })
  const { leaf, chain, issuers } = makeAuthority(join(folder, 'acme'))
  await sign(join(folder, 'demo'), leaf, chain)
  const rows = [
    { years: 0, accepts: false, isServed: true, status: 'valid', problem: /^$/ },
    { years: 2, accepts: false, isServed: false, status: 'expired', problem: / expired on \d{4}-\d\d-\d\d$/ },
    { years: 2, accepts: true, isServed: true, status: 'expired', problem: /expired on/ },
    { years: -2, accepts: false, isServed: false, status: 'expired', problem: /is not valid before/ },
    { years: 0.95, accepts: false, isServed: true, status: 'valid', problem: /expires on/ }
  ] as const
  for (const { years, accepts, isServed, status, problem } of rows) {
    const { policy } = trustOf([{ issuers, acceptsExpired: accepts }], { roots: new Map([['demo', 'require']]) })
    const [verified] = await atTime(t, years * YEAR_MS, () => verify(join(folder, 'demo'), policy))
    t.match(verified, { isServed, problem, report: { status, signer: 'acme' } }, `${status} after ${years} years`)
  }
  const { policy } = trustOf([{ issuers }], { roots: new Map([[basename(folder), 'require']]) })
  const { skills } = await startGuarded(t, folder, policy)
  t.strictSame(await skills.list(), ['demo'])
  await t.rejects(atTime(t, 2 * YEAR_MS, () => skills.read('demo', (state) => state.manifest())),
    { code: 'skill_not_found' }, 'at the next request')
})
