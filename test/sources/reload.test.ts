import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { createSecret, digestOf } from '../../src/access/secret.ts'
import t, { type Test } from 'tap'
import { createRepository, skillFiles } from '../helper/git.ts'
import { type ServiceProcess, startProcess } from '../helper/process.ts'
import { skillText, until } from '../helper/skills.ts'

const TOKEN = createSecret('token')
const KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' })

/** A service with one git source, an access file, a trust file and an audit log. */
async function startWorld (t: Test) {
  const team = createRepository(t, 'team')
  team.commit({ ...skillFiles('a'), 'more/b/SKILL.md': skillText('b') })
  const folder = join(t.testdirName, 'own')
  mkdirSync(join(folder, 'logs'), { recursive: true })
  const file = (name: string) => join(folder, name)
  const write = (name: string, value: unknown): void => { writeFileSync(file(name), JSON.stringify(value)) }
  const git = `git+file://${team.path}`
  const sources = {
    team: { name: 'team', git, path: 'skills', interval: '10s' }, extra: { name: 'extra', git, path: 'more' }
  }
  const good = {
    config: { sources: [sources.team] },
    access: {
      anonymous: ['all'],
      tokens: [{ name: 'operator', sha256: digestOf(TOKEN), groups: ['all'] }],
      rules: [{ groups: ['all'] }]
    },
    trust: { signers: [{ name: 'acme', key: 'acme.pem' }] }
  }
  writeFileSync(file('acme.pem'), KEY)
  const reset = (): void => { for (const [name, value] of Object.entries(good)) write(`${name}.yaml`, value) }
  reset()
  const stateDir = join(t.testdirName, 'state')
  const args = ['--state-dir', stateDir, '--config', file('config.yaml'), '--access', file('access.yaml'),
    '--trust', file('trust.yaml')]
  const env = { LIMITS: 'off', AUDIT_LOG: file('logs/audit.jsonl') }
  const service = await startProcess(t, { args, env })
  await until(async () => (await fetch(`${service.url}/readyz`)).status === 200)
  return { team, folder, stateDir, file, write, sources, good, reset, service }
}

type World = Awaited<ReturnType<typeof startWorld>>

async function reload ({ log, signal }: ServiceProcess): Promise<ReadonlyArray<Record<string, unknown>>> {
  const before = log().length
  const isOver = ({ msg }: Record<string, unknown>) => /^SIGHUP: (?:done|reload failed)/.test(String(msg))
  signal('SIGHUP')
  await until(() => log().slice(before).some(isOver))
  return log().slice(before).filter(isOver)
}

/** Makes one mistake after the other. */
async function failReloads (t: Test, { team, stateDir, file, write, sources, good, reset, service }: World) {
  const both = { sources: [sources.team, sources.extra] }
  interface Mistake { readonly make: () => void, readonly mend?: () => void, readonly problem: RegExp }
  const mistakes: Readonly<Record<string, Mistake>> = {
    'configuration file': {
      make: () => { write('config.yaml', { sources: [{ gti: 'x' }] }) },
      problem: /config.yaml:1: sources\[0\].gti is an unknown key/
    },
    'two folders with one name': {
      make: () => { write('config.yaml', { sources: [{ folder: 'skills' }, { folder: 'elsewhere/skills' }] }) },
      problem: /two folders of skills are called "skills"/
    },
    'a folder that has files of the service': {
      make: () => { write('config.yaml', { sources: [{ folder: '.' }] }) },
      problem: /audit.jsonl" is inside .*whose files are served/
    },
    'a new source that cannot be opened': {
      make: () => {
        write('config.yaml', { sources: [sources.extra] })
        renameSync(join(stateDir, 'sources'), join(stateDir, 'sources.away'))
        writeFileSync(join(stateDir, 'sources'), '')
      },
      mend: () => {
        rmSync(join(stateDir, 'sources'))
        renameSync(join(stateDir, 'sources.away'), join(stateDir, 'sources'))
      },
      problem: /the state folder .* cannot be written/
    },
    'trust file': {
      make: () => {
        write('config.yaml', both)
        write('trust.yaml', { ...good.trust, roots: { other: 'require' } })
      },
      problem: /roots\.other is not the name of a folder of skills/
    },
    'access file': {
      make: () => {
        write('config.yaml', both)
        write('access.yaml', { ...good.access, rules: [{ groups: ['all'], roots: ['other'] }] })
      },
      problem: /roots\[0\] is not the name of a folder of skills/
    },
    'audit log': {
      make: () => {
        write('config.yaml', both)
        renameSync(file('logs'), file('logs.away'))
        writeFileSync(file('logs'), '')
      },
      mend: () => {
        rmSync(file('logs'))
        renameSync(file('logs.away'), file('logs'))
      },
      problem: /AUDIT_LOG: .* cannot be opened/
    }
  }
  for (const [what, { make, mend, problem }] of Object.entries(mistakes)) {
    make()
    t.match(await reload(service), [{ level: 40, msg: /^SIGHUP: reload failed/, problem }], what)
    mend?.()
    const ready = await fetch(`${service.url}/readyz`, { headers: { authorization: `Bearer ${TOKEN}` } })
    t.match(await ready.json(), { detail: /the last reload failed/, sources: { length: 1, 0: { name: 'team' } } }, what)
    t.equal(ready.status, 200, what)
    reset()
  }
  team.commit({ 'skills/a/SKILL.md': skillText('a', 'Edited.\n') })
  // Without a reload: the source is followed at its interval.
  await until(async () => (await (await fetch(`${service.url}/skills/a`)).text()).includes('Edited.'))
  t.match(await reload(service), [{ msg: 'SIGHUP: done' }])
}

async function addWithRule (t: Test, { write, sources, good, service }: World) {
  const over = new AbortController()
  const seen = new Map<number, number>()
  const asking = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted) {
      const { status } = await fetch(`${service.url}/skills/b`, { headers: { authorization: `Bearer ${TOKEN}` } })
      seen.set(status, (seen.get(status) ?? 0) + 1)
    }
  })
  for (let round = 0; round < 3; round++) {
    write('trust.yaml', { ...good.trust, roots: { extra: 'require' } })
    write('access.yaml', { ...good.access, rules: [{ groups: ['all'], roots: ['team', 'extra'] }] })
    write('config.yaml', { sources: [sources.team, sources.extra] })
    t.match(await reload(service), [{ msg: 'SIGHUP: done', roots: ['team', 'extra'] }])
    write('trust.yaml', good.trust)
    write('access.yaml', good.access)
    write('config.yaml', good.config)
    t.match(await reload(service), [{ msg: 'SIGHUP: done', roots: ['team'] }])
  }
  over.abort()
  await Promise.all(asking)
  t.strictSame([...seen.keys()], [404])
  t.ok((seen.get(404) ?? 0) > 20, `${seen.get(404) ?? 0} answers`)
}

async function failCopies (t: Test, { stateDir, write, good, service }: World) {
  const get = (path: string) => fetch(service.url + path, { headers: { authorization: `Bearer ${TOKEN}` } })
  const statusOf = async () => (await get('/skills/a')).status
  const ready = async () => await (await get('/readyz')).json() as { readonly detail?: string }
  t.equal(await statusOf(), 200)
  rmSync(join(stateDir, 'verified'), { recursive: true })
  writeFileSync(join(stateDir, 'verified'), '')
  write('trust.yaml', { ...good.trust, roots: { team: 'require' } })
  t.match(await reload(service), [{ msg: 'SIGHUP: done' }])
  t.equal(await statusOf(), 503)
  t.match(await ready(), { detail: /skills cannot be checked, so they are not served: the state folder cannot be/ })
  t.match(service.log().filter(({ source, code }) => source === 'team' && code === 'disk'), [{ level: 40 }])
  rmSync(join(stateDir, 'verified'))
  await until(async () => (await ready()).detail?.includes('cannot be checked') !== true)
  t.match(await ready(), { quarantined: { count: 1, first: [{ name: 'a', code: 'unsigned' }] } })
  t.equal(await statusOf(), 404)
}

/** Replaces, edits and reorders folders and sources. */
async function changeSources (t: Test, { folder, file, write, sources, reset, service }: World) {
  for (const path of ['first/one', 'first/both', 'second/two', 'second/both']) {
    mkdirSync(join(folder, path), { recursive: true })
    writeFileSync(join(folder, path, 'SKILL.md'), skillText(basename(path), `Of the ${dirname(path)}.\n`))
  }
  const [first, second] = [{ folder: 'first' }, { folder: 'second' }]
  const team = { ...sources.team, webhook: { secret_file: 'hook.secret' } }
  const change = async (list: readonly object[], names: readonly string[]): Promise<void> => {
    write('config.yaml', { sources: list })
    t.match(await reload(service), [{ msg: 'SIGHUP: done', roots: names }])
  }
  const textOf = async (path: string) => await (await fetch(service.url + path)).text()

  await change([first, second], ['first', 'second'])
  const over = new AbortController()
  const statuses = new Set<number>()
  const asking = (async () => {
    while (!over.signal.aborted) {
      for (const name of ['two', 'both']) statuses.add((await fetch(`${service.url}/skills/${name}`)).status)
    }
  })()
  await change([team, second], ['team', 'second'])
  t.match(service.log().find(({ msg }) => String(msg).startsWith('cannot read the secret of the webhook')),
    { level: 40, source: 'team', file: file('hook.secret') })
  const hook = async () =>
    (await fetch(`${service.url}/hooks/git`, { method: 'POST', headers: { 'x-gitlab-token': 'word' } })).status
  t.equal(await hook(), 403, 'K84: a webhook without its secret is refused')
  writeFileSync(file('hook.secret'), 'word\n')
  t.equal(await hook(), 200, 'a file that comes later counts')
  t.equal(await textOf('/skills'), '{"skills":["a","both","two"]}')
  t.match(await textOf('/skills/both'), /Of the second/)
  t.match(await textOf('/catalog?q=two'), /"name":"two"/)
  t.match(await textOf('/catalog?q=one'), /"skills":\[\]/)

  await change([{ ...team, layout: 'single' }, first, second], ['team', 'first', 'second'])
  t.match(await textOf('/skills/both'), /Of the first/)
  await change([second, first], ['second', 'first'])
  t.match(await textOf('/skills/both'), /Of the second/, 'the order counts')
  writeFileSync(join(folder, 'second/two/SKILL.md'), skillText('two', 'Edited.\n'))
  t.match(await textOf('/skills/two'), /Edited/)
  over.abort()
  await asking
  t.strictSame([...statuses], [200], 'what stays is served all the time')
  reset()
  t.match(await reload(service), [{ msg: 'SIGHUP: done', roots: ['team'] }])
}

t.test('K89 K95: reloads of configuration, access, trust and audit log', async (t) => {
  const world = await startWorld(t)
  await t.test('one that fails changes nothing: what is in force is served and followed',
    async (t) => { await failReloads(t, world) })
  await t.test('folders and sources follow the configuration file', async (t) => { await changeSources(t, world) })
  await t.test('a source whose rule comes with the same reload never serves an unsigned byte',
    async (t) => { await addWithRule(t, world) })
  await t.test('new rules whose copies cannot be written are in force: nothing unverified is served',
    async (t) => { await failCopies(t, world) })
  t.match(await world.service.stop(), { code: 0, stderr: '' })
})
