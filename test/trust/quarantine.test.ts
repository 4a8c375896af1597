import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { InjectOptions } from 'fastify'
import t from 'tap'
import type { ScanRules } from '../../src/trust/scans.ts'
import { createSigner } from '../../src/trust/signers.ts'
import { TrustPolicy } from '../../src/trust/trust-policy.ts'
import type { Quarantined } from '../../src/schemas/health.ts'
import type { PolicyFiles } from '../../src/trust/verdict.ts'
import type { TrustFile } from '../../src/trust/trust-file.ts'
import { buildService } from '../helper/build.ts'
import { modernRequest } from '../helper/mcp.ts'
import { makeKeyPair, sign, startGuarded } from '../helper/signing.ts'
import { createManager, passTick, skill, until } from '../helper/skills.ts'

/** In every file and in the description of the skill. */
const CANARY = 'CANARY'
const OTHER = `sha256:${'0'.repeat(64)}`

const [acme, other] = [makeKeyPair(), makeKeyPair()]
const signerOf = ({ publicKey: key }: typeof acme, name = 'acme') => createSigner({ name, key, acceptsExpired: false })

function trustWith (changes: Partial<TrustFile> = {}): TrustFile {
  return { signers: [signerOf(acme)], roots: new Map([['skills', 'require']]), deny: new Set(), ...changes }
}

const scanOf = (severity: 'low' | 'critical') =>
  ({ tool: 'scanner', scanned_at: new Date().toISOString(), results: [{ severity, message: 'downloads' }] })

const requiring = (changes: Partial<TrustFile> = {}) => () => ({ trust: trustWith(changes) })
const reporting = (changes: Partial<TrustFile> = {}) => requiring({ roots: new Map(), ...changes })

/** With these scans of the revision. */
const scanned = (rules: Omit<ScanRules, 'byRevision'>, severity: 'low' | 'critical') => (revision: string) =>
  ({ trust: trustWith({ scans: { ...rules, byRevision: new Map([[revision, [scanOf(severity)]]]) } }) })

/** A skill that is served, and what quarantines it. */
interface Case {
  readonly name: string
  readonly code: string
  /** Before the service starts. Default: signs the skill by acme. */
  readonly prepare?: (folder: string) => void | Promise<void>
  readonly before: (revision: string, name: string) => PolicyFiles
  readonly after: (revision: string, name: string) => PolicyFiles
  /** After the service has been read. */
  readonly change?: (folder: string) => void
}

const byAcme = async (folder: string) => { await sign(folder, acme) }
const edit = (folder: string): void => { fs.appendFileSync(join(folder, 'SKILL.md'), `more ${CANARY}\n`) }

const CASES: readonly Case[] = [
  {
    name: 'files changed after the signing',
    code: 'signature_stale',
    prepare: async (folder) => { await byAcme(folder); edit(folder) },
    before: reporting(),
    after: requiring()
  },
  {
    name: 'files change under require',
    code: 'signature_stale',
    before: requiring(),
    after: requiring(),
    change: edit
  },
  { name: 'nobody signed the skill', code: 'unsigned', prepare: () => {}, before: reporting(), after: requiring() },
  {
    name: 'somebody else signed the skill',
    code: 'signature_untrusted',
    prepare: async (folder) => { await sign(folder, other) },
    before: reporting(),
    after: requiring()
  },
  {
    name: 'the signer is taken out of the trust file',
    code: 'signature_untrusted',
    before: requiring(),
    after: requiring({ signers: [signerOf(other, 'other')] })
  },
  {
    name: 'the signature is damaged',
    code: 'signature_invalid',
    prepare: (folder) => { fs.writeFileSync(join(folder, 'skill.oms.sig'), CANARY) },
    before: reporting(),
    after: requiring()
  },
  {
    name: 'the revision is denied where nothing is required',
    code: 'trust_denied',
    before: reporting(),
    after: (revision) => reporting({ deny: new Set([revision]) })()
  },
  {
    name: 'the signer is denied',
    code: 'trust_denied',
    before: requiring(),
    after: requiring({ deny: new Set(['acme']) })
  },
  {
    name: 'a scanner found something critical',
    code: 'scan_result',
    before: requiring(),
    after: scanned({ max_severity: 'medium' }, 'critical')
  },
  {
    name: 'there is no scan',
    code: 'scan_missing',
    before: scanned({ required: true }, 'low'),
    after: requiring({ scans: { required: true, byRevision: new Map() } })
  },
  { name: 'the lock does not name the skill', code: 'not_pinned', before: lock, after: () => ({ lock: new Map() }) },
  {
    name: 'the lock names another revision',
    code: 'pin_mismatch',
    before: lock,
    after: (_, name) => lock(OTHER, name)
  },
  {
    name: 'files change under a lock',
    code: 'pin_mismatch',
    before: lock,
    after: lock,
    change: edit
  }
]

function lock (revision: string, name: string): PolicyFiles {
  return { lock: new Map([[name, new Set([revision])]]) }
}

interface Readiness {
  readonly quarantined: Quarantined
}

/** All ways to read a skill: with a revision where the API takes one. */
function readsOf (name: string, revision: string, artifact: string): readonly InjectOptions[] {
  const call = (tool: string, args: object): InjectOptions =>
    ({ method: 'POST', url: '/agent/tool-call', payload: { name: tool, arguments: { skill_name: name, ...args } } })
  const mcp = (method: string, params: Readonly<Record<string, unknown>>): InjectOptions => {
    const { headers, body } = modernRequest({ method, params })
    return { method: 'POST', url: '/mcp', headers: headers as Record<string, string>, payload: String(body) }
  }
  const reads: readonly InjectOptions[] = [
    ...['', '/files/run.sh', '/files', '/archive.zip'].map((rest) => ({ url: `/skills/${name}${rest}` })),
    { url: `/catalog/${name}` },
    call('get_skill', {}),
    call('read_file_in_skill', { file_path: 'run.sh' })
  ]
  return [
    ...reads,
    ...reads.map((read) => ({ ...read, url: `${String(read.url)}?revision=${revision}` })),
    ...reads.map((read) => ({ ...read, headers: { 'if-match': `"${revision}"` } })),
    mcp('resources/read', { uri: `skill://${name}/run.sh` }),
    mcp('tools/call', { name: 'get_skill', arguments: { skill_name: name } }),
    ...[
      artifact, `/.well-known/skills/${name}/SKILL.md`, `/ui/skills/${name}`, `/ui/skills/${name}/files/run.sh`
    ].map((url) => ({ url }))
  ]
}

const LISTS = ['/skills', '/catalog', '/agent/prompt', '/.well-known/agent-skills/index.json', '/llms.txt', '/']

const nameOf = (index: number): string => `case-${index}`
const prepared = fs.mkdtempSync(join(tmpdir(), 'quarantine-'))
t.teardown(() => { fs.rmSync(prepared, { recursive: true }) })
for (const [index, { prepare = byAcme }] of CASES.entries()) {
  const [name, folder] = [nameOf(index), join(prepared, nameOf(index))]
  fs.mkdirSync(folder)
  const document = `---\nname: ${name}\ndescription: What ${CANARY}-${index}- is for\n---\n${CANARY}\n`
  fs.writeFileSync(join(folder, 'SKILL.md'), document)
  fs.writeFileSync(join(folder, 'run.sh'), `echo ${CANARY}\n`)
  await prepare(folder)
}
const manager = createManager(t, [prepared])
await manager.initialize()
const policy = new TrustPolicy({})
const { root, app } = await buildService(t, {
  options: {
    policy, watcher: true, prepare: (folder) => { fs.cpSync(prepared, join(folder, 'skills'), { recursive: true }) }
  }
})

async function ask (question: InjectOptions | string): Promise<string> {
  const { statusCode, rawPayload } = await app.inject(question)
  return `${statusCode} ${rawPayload.toString('latin1')}`
}

async function artifactOf (skill: string): Promise<string> {
  let place: string | undefined
  await until(async () => {
    const answer = await app.inject('/.well-known/agent-skills/index.json')
    const { skills = [] } = answer.json<{ skills?: Array<{ name: string, url: string }> }>()
    place = skills.find(({ name }) => name === skill)?.url
    return place !== undefined
  })
  return `/.well-known/agent-skills/${place ?? ''}`
}

for (const [index, { name: reason, before, after, change, code }] of CASES.entries()) {
  const name = nameOf(index)
  t.test(`K59, K95: a skill cannot be read in any way when ${reason}`, async (t) => {
    const { revision } = await manager.read(name, (state) => state.manifest())
    policy.replace(before(revision, name))
    await until(async () => (await ask(`/skills/${name}`)).startsWith('200'))
    const reads = readsOf(name, revision, await artifactOf(name))
    /** The reads whose answers match. */
    const matching = async (pattern: RegExp): Promise<InjectOptions[]> => {
      const found: InjectOptions[] = []
      for (const read of reads) if (pattern.test(await ask(read))) found.push(read)
      return found
    }
    // They take most of the time, and are the same for each reason that changes no file.
    if (index === 0 || change !== undefined) {
      t.strictSame(await matching(/^(?!200 [^]*(?:CANARY|run\.sh))/), [], 'each of them is served')
    }

    change?.(join(root, name))
    policy.replace(after(revision, name))
    if (change === undefined) t.strictSame(await matching(/CANARY|^200 [^]*run\.sh/), [], 'none is served at once')
    await until(async () => (await ask(`/skills/${name}`)).startsWith('404'))
    t.strictSame(await matching(/CANARY|^200 [^]*run\.sh/), [], 'none is served')
    for (const path of LISTS) t.notMatch(await ask(path), `${CANARY}-${index}-`, path)
    // Until it is checked by the new rules, the skill is refused for that.
    await until(async () => {
      const { quarantined } = (await app.inject('/readyz')).json<Readiness>()
      return quarantined.first.some((each) => each.name === name && each.root === 'skills' && each.code === code)
    })
  })
}

t.test('K59, K95: a kept revision has the files that a signature covers, and no others', async (t) => {
  const base = join(t.testdir({ skills: { demo: skill('demo', { '.gitignore': CANARY, 'a.md': 'one' }) } }), 'skills')
  await byAcme(join(base, 'demo'))
  const policy = new TrustPolicy(reporting()())
  const { skills } = await startGuarded(t, base, policy)
  const revisionNow = async () => (await skills.read('demo', (state) => state.manifest())).revision
  const whole = await revisionNow()
  policy.replace(requiring()())
  await until(async () => await revisionNow().catch(() => whole) !== whole)
  const covered = await revisionNow()
  passTick(base)
  fs.writeFileSync(join(base, 'demo/a.md'), 'two')
  await byAcme(join(base, 'demo'))
  await until(async () => await revisionNow().catch(() => covered) !== covered)
  const kept = (revision: string, file: string) => skills.at(revision).read('demo', (state) => state.file(file))
  t.equal((await kept(covered, 'a.md')).utf8, 'one')
  await t.rejects(kept(covered, '.gitignore'), { code: 'file_not_found' })
  await t.rejects(kept(whole, 'a.md'), { code: 'revision_changed' })
})
