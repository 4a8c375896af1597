import { createHash, createPublicKey, X509Certificate } from 'node:crypto'
import { appendFileSync, cpSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { checkSignature } from '../../src/trust/check-signature.ts'
import type { Signer } from '../../src/trust/signers.ts'
import { trustOf, verify } from '../helper/signing.ts'

const FIXTURES = fileURLToPath(new URL('../fixtures/model-signing/', import.meta.url))

function fixture (name: string): Buffer {
  return readFileSync(join(FIXTURES, name))
}

function keyOf (name: string): Partial<Signer> {
  return { name, key: createPublicKey(fixture(`${name}.pem`)) }
}

function rootOf (name: string): Partial<Signer> {
  return { name, roots: [new X509Certificate(fixture(`${name}-root.pem`))] }
}

const SIGNERS = [keyOf('p256'), keyOf('p384'), keyOf('p521'), rootOf('certificate'), rootOf('expired')]

async function statusOf (t: Test, signature: string, change: (folder: string) => void = () => {}, signers = SIGNERS) {
  const folder = join(t.testdir(), 'skill')
  cpSync(join(FIXTURES, 'skill'), folder, { recursive: true })
  writeFileSync(join(folder, 'skill.oms.sig'), fixture(`${signature}.sig`))
  change(folder)
  const [verified] = await verify(folder, trustOf(signers).policy)
  return [verified?.report?.status, verified?.report?.signer, verified?.problem]
}

t.test('K95: signatures of the reference implementation are valid, by key and by certificate, beside a .gitignore that it leaves out', async (t) => {
  for (const name of ['p256', 'p384', 'p521', 'certificate']) t.strictSame(await statusOf(t, name), ['valid', name, 'the signature does not cover \'.gitignore\''], name)
})

t.test('K95: its signatures of somebody else, of other files, of another day and of another form are told apart', async (t) => {
  const cases: ReadonlyArray<readonly [signature: string, change: ((folder: string) => void) | undefined, status: string, signer: string | null, problem: RegExp, signers?: Array<Partial<Signer>>]> = [
    ['p256', undefined, 'untrusted', null, /not in the trust file/, [keyOf('p384'), rootOf('certificate')]],
    ['certificate', undefined, 'untrusted', null, /not in the trust file/, [keyOf('p256'), rootOf('expired')]],
    ['expired', undefined, 'expired', 'expired', /^the certificate of expired, which signed the skill, expired on 2025-01-01; the signature does not cover '\.gitignore'$/],
    ['p384', (folder) => { appendFileSync(join(folder, 'scripts/greet.sh'), '#') }, 'stale', 'p384', /^'scripts\/greet\.sh' changed after p384 signed the skill$/],
    ['certificate', (folder) => { writeFileSync(join(folder, 'scripts/more.sh'), '') }, 'stale', 'certificate', /^'scripts\/more\.sh' came after/],
    ['p521', (folder) => { rmSync(join(folder, 'references/ä.md')) }, 'stale', 'p521', /^'references\/ä\.md' went away/],
    ['p256', (folder) => {
      renameSync(join(folder, 'notes.txt'), join(folder, '../notes.txt'))
      symlinkSync('../notes.txt', join(folder, 'notes.txt'))
    }, 'stale', 'p256', /^'notes\.txt' went away/],
    ['ignoring', undefined, 'valid', 'p256', /^the signature does not cover '\.gitignore', 'notes\.txt'$/],
    ['ignoring', (folder) => { rmSync(join(folder, 'notes.txt')) }, 'valid', 'p256', /cover '\.gitignore'$/],
    ['ignoring', (folder) => { writeFileSync(join(folder, '.skillignore'), 'notes.txt\n.skillignore\n') }, 'valid', 'p256', /cover '\.gitignore'$/],
    ['shards', undefined, 'invalid', 'p256', /lists files by shards, sign the skill by whole files$/]
  ]
  for (const [signature, change, status, signer, problem, signers] of cases) t.match(await statusOf(t, signature, change, signers), [status, signer, problem], `${signature} ${status}`)
})

t.test('K95: signatures of its earlier releases are valid from the first version of the format on', async (t) => {
  const signers: Signer[] = [
    { name: 'key', acceptsExpired: false, key: createPublicKey(fixture('released/key.pem')) },
    { name: 'root', acceptsExpired: false, roots: [new X509Certificate(fixture('released/root.pem'))] }
  ]
  const pair = { 'signme-1': 'signme-1', 'signme-2': 'signme-2' }
  for (const [release, files, status, problem] of [
    ['v1.0.0-certificate', pair, 'valid', ''],
    // A model of one file, which is listed under the name of a folder: no skill is one.
    ['v1.0.0-elliptic-key', { '.': 'signme-1\n' }, 'valid', ''],
    ['v0.3.1-elliptic-key', { '.': 'signme-1\n' }, 'valid', ''],
    ['v1.1.0-elliptic-key', { ...pair, 'signme-1': 'signme-1\n' }, 'valid', ''],
    // It signed other bytes than it wrote down.
    ['v0.2.0-certificate', pair, 'invalid', 'the signature does not belong to the list of files that it comes with'],
    ['v1.1.0-sigstore', pair, 'invalid', 'the signature was made with Sigstore\'s short-lived certificates, which are not supported']
  ] as const) {
    const contents: Readonly<Record<string, Buffer>> = { ...Object.fromEntries(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)])), 'skill.oms.sig': fixture(`released/${release}.sig`) }
    const manifest = {
      skill_name: 'model',
      revision: 'sha256:',
      files: Object.entries(contents).map(([path, bytes]) => ({ path, size_bytes: bytes.length, media_type: '', digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}` }))
    }
    const result = await checkSignature({ manifest, hasLinks: async () => false, read: async (path) => contents[path] ?? Buffer.alloc(0) }, signers)
    t.match(result, { status, problem }, release)
  }
})
