import { execFileSync, spawnSync } from 'node:child_process'
import { createPrivateKey, sign as signBytes, X509Certificate } from 'node:crypto'
import fs from 'node:fs'
import { join } from 'node:path'
import { dsse } from '@sigstore/core'
import t from 'tap'
import { formatBundle, PAYLOAD_TYPE } from '../../src/trust/bundle.ts'
import { parseTrust } from '../../src/trust/trust-file.ts'
import { sign, statementAbout, trustOf, verify } from '../helper/signing.ts'
import { skill } from '../helper/skills.ts'

const YEAR_MS = 365 * 86_400_000
const FOREIGN = / not in the trust file: the certificate of 'CN=leaf' was issued by 'CN=issuer'$/
const WITH_OPENSSL = { skip: spawnSync('openssl', ['version']).status !== 0 && 'openssl is not installed' }
const CA = 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n'

/**
 * Root, intermediate and leaf, made by OpenSSL in a folder, which has `issuer.pem` and `leaf.pem`. `chain` is the PEM
 * of leaf and intermediate.
 * @param options.ca extensions of the intermediate
 * @param options.usage the key usage of the leaf; `more`: its other extensions
 */
function makeAuthority (
  folder: string,
  { usage = 'critical,digitalSignature', purpose = 'codeSigning', days = 365, ca = CA, more = '' } = {}
) {
  fs.mkdirSync(folder, { recursive: true })
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  }
  const newKey = (name: string): void => {
    openssl('ecparam', '-name', 'secp384r1', '-genkey', '-noout', '-out', `${name}.key`)
  }
  const leafExtensions = ['basicConstraints=critical,CA:FALSE', `keyUsage=${usage}`, `extendedKeyUsage=${purpose}`,
    more]
  fs.writeFileSync(join(folder, 'issuer.ext'), ca)
  fs.writeFileSync(join(folder, 'leaf.ext'), leafExtensions.join('\n'))
  for (const name of ['root', 'issuer', 'leaf']) newKey(name)
  openssl('req', '-x509', '-new', '-key', 'root.key', '-subj', '/CN=Root', '-days', '3650', '-out', 'root.pem')
  for (const [name, issuer] of [['issuer', 'root'], ['leaf', 'issuer']] as const) {
    openssl('req', '-new', '-key', `${name}.key`, '-subj', `/CN=${name}`, '-out', `${name}.csr`)
    openssl('x509', '-req', '-in', `${name}.csr`, '-CA', `${issuer}.pem`, '-CAkey', `${issuer}.key`, '-CAcreateserial',
      '-days', String(days), '-extfile', `${name}.ext`, '-out', `${name}.pem`)
  }
  const read = (name: string): string => fs.readFileSync(join(folder, name), 'utf8')
  const privatePem = read('leaf.key')
  const { publicKey } = new X509Certificate(read('leaf.pem'))
  const publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  return {
    folder,
    issuers: [new X509Certificate(read('issuer.pem'))],
    chain: read('leaf.pem') + read('issuer.pem'),
    leaf: { privateKey: createPrivateKey(privatePem), publicKey, privatePem, publicPem }
  }
}

type Authority = ReturnType<typeof makeAuthority>

/** Whether OpenSSL accepts a leaf below the issuer that is given to it alone. */
function opensslAccepts ({ folder }: Authority): boolean {
  const args = ['verify', '-x509_strict', '-partial_chain', '-trusted', 'issuer.pem', 'leaf.pem']
  return spawnSync('openssl', args, { cwd: folder }).status === 0
}

interface Case {
  readonly name: string
  readonly made?: Parameters<typeof makeAuthority>[1]
  readonly openssl: boolean
  /** What the trust file, or the check of a skill, says; undefined for a valid signature. */
  readonly problem?: RegExp
}

const CASES: readonly Case[] = [
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
    problem: FOREIGN
  },
  {
    name: 'an issuer that may not sign certificates',
    made: { ca: 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,digitalSignature\n' },
    openssl: false,
    problem: FOREIGN
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
  for (const [index, { name, made, openssl, problem = /^$/ }] of CASES.entries()) {
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
  const certificate = ({ folder }: Authority, name: string) => new X509Certificate(fs.readFileSync(join(folder, name)))
  const [leaf, root] = [certificate(acme, 'leaf.pem'), certificate(acme, 'root.pem')]
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
  const signature = signBytes('sha384', signed, createPrivateKey(other.leaf.privatePem))
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
    const time = Date.now() + years * YEAR_MS
    const clock = t.intercept(Date, 'now', { value: () => time })
    const [verified] = await verify(join(folder, 'demo'), policy).finally(() => { clock.restore() })
    t.match(verified, { isServed, problem, report: { status, signer: 'acme' } }, `${status} after ${years} years`)
  }
})
