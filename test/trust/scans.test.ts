import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseScans } from '../../src/trust/scans.ts'
import { modernRequest } from '../helper/mcp.ts'
import { startProcess } from '../helper/process.ts'
import { makeKeyPair, sign, trustOf, verify } from '../helper/signing.ts'
import { skill, until } from '../helper/skills.ts'

const DAY_MS = 86_400_000

interface Entry {
  readonly revision: string
  readonly trust: { readonly checked_revision: string, readonly status: string, readonly scans?: unknown }
  readonly findings: ReadonlyArray<{ readonly code: string, readonly message: string, readonly file?: string }>
}

function scanOf (severity: string, at = new Date().toISOString()) {
  return { tool: 'skill-scanner 2.1', scanned_at: at, results: [{ severity, message: 'downloads a program', file: 'run.sh' }], note: 'is not read' }
}

t.test('K95: results of scanners count for their revision, and refuse by severity, age and absence', async (t) => {
  const folder = join(t.testdir({ demo: skill('demo', { 'run.sh': 'echo' }) }), 'demo')
  const key = makeKeyPair()
  await sign(folder, key)
  const judge = async (revision: string | undefined, scans: readonly object[], rules: object = {}, days = 0) => {
    const byRevision = new Map(revision === undefined ? [] : [[revision, scans as never[]]])
    const { policy } = trustOf([{ key: key.publicKey }], { roots: new Map([['demo', 'require']]), scans: { byRevision, isRequired: false, ...rules }, now: () => Date.now() + days * DAY_MS })
    const [verified] = await verify(folder, policy)
    return { isServed: verified?.isServed, codes: verified?.findings.map(({ code }) => code), revision: verified?.report?.checked_revision, scans: verified?.report?.scans }
  }
  const { revision } = await judge(undefined, [])
  t.match(await judge(undefined, []), { isServed: true, codes: [], scans: [] })
  t.match(await judge(`sha256:${'0'.repeat(64)}`, [scanOf('critical')], { maxSeverity: 'low' }), { isServed: true, codes: [], scans: [] }, 'of another revision')
  const high = await judge(revision, [scanOf('high'), scanOf('info')])
  t.match(high, { isServed: true, codes: ['scan_result', 'scan_note'], scans: [{ tool: 'skill-scanner 2.1', results: 1, severity: 'high' }, { severity: 'info' }] })
  t.match(await judge(revision, [scanOf('high')], { maxSeverity: 'medium' }), { isServed: false, codes: ['scan_result'] })
  t.match(await judge(revision, [scanOf('medium')], { maxSeverity: 'medium' }), { isServed: true })
  t.match(await judge(undefined, [], { isRequired: true }), { isServed: false, codes: ['scan_missing'] })
  t.match(await judge(revision, [{ ...scanOf('low'), results: [] }], { isRequired: true }), { isServed: true, codes: [], scans: [{ severity: null }] }, 'a scan without results is a scan, and no praise')
  t.match(await judge(revision, [scanOf('low')], { isRequired: true, maxAgeDays: 30 }, 31), { isServed: false, codes: ['scan_missing'], scans: [] })
})

t.test('K95: a service follows scans and revocations: of a revision, and of a signer', async (t) => {
  const cwd = t.testdir({ skills: { one: skill('one', { 'run.sh': 'echo' }), two: skill('two') }, 'scans.json': '{}' })
  const trustFile = join(cwd, 'trust.yaml')
  const keys = makeKeyPair()
  writeFileSync(join(cwd, 'acme.pem'), keys.publicPem)
  for (const name of ['one', 'two']) await sign(join(cwd, 'skills', name), keys)
  const write = (more = ''): void => { writeFileSync(trustFile, `signers: [{ name: acme, key: acme.pem }]\nroots: { skills: require }\nscans: { file: scans.json, max_severity: medium }\n${more}`) }
  write()
  const service = await startProcess(t, { cwd, args: ['--trust', 'trust.yaml', './skills'] })
  const get = async (path: string) => await fetch(`${service.url}${path}`)
  const list = async () => (await (await get('/skills')).json() as { skills: readonly string[] }).skills.join()
  const entryOf = async (name: string) => await (await get(`/catalog/${name}`)).json() as Entry
  t.equal(await list(), 'one,two')
  const { revision, trust } = await entryOf('one')
  t.strictSame(trust.scans, [])
  for (const [method, uri, found] of [['skills/get', 'skill://one/SKILL.md', 'skill'], ['resources/read', 'skill://one/run.sh', 'contents']] as const) {
    const { result } = await (await fetch(`${service.url}/mcp`, modernRequest({ method, params: { uri } }))).json() as { result: Record<string, unknown> }
    t.match([result[found]].flat(), [{ _meta: { 'skillserve/trust': trust } }], `MCP says the same: ${method}`)
  }

  writeFileSync(join(cwd, 'scans.json'), JSON.stringify({ [revision]: [scanOf('low')] }))
  await until(async () => (await entryOf('one')).findings.some(({ code }) => code === 'scan_note'))
  t.match((await entryOf('one')).findings, [{ code: 'scan_note', message: /^skill-scanner 2\.1 on \d{4}-\d\d-\d\d \(low\): downloads a program$/, file: 'run.sh' }])
  writeFileSync(join(cwd, 'scans.json'), JSON.stringify({ [revision]: [scanOf('critical')] }))
  await until(async () => await list() === 'two')
  t.equal((await get('/skills/one')).status, 404)
  writeFileSync(join(cwd, 'scans.json'), '{}')
  await until(async () => await list() === 'one,two')

  write(`deny: ["${revision}"]\n`)
  await until(async () => await list() === 'two')
  for (const path of ['/skills/one', `/skills/one?revision=${revision}`, '/catalog/one', `/skills/one/archive.zip?revision=${revision}`]) t.equal((await get(path)).status, 404, path)
  write('deny: [acme]\n')
  await until(async () => await list() === '')
  write()
  await until(async () => await list() === 'one,two')
  appendFileSync(join(cwd, 'skills/one/run.sh'), ' ')
  await until(async () => (await get('/skills/one')).status === 404)
  await service.printed("run.sh' changed after acme signed")
  writeFileSync(join(cwd, 'scans.json'), '{"x": [{}]}')
  await service.printed('the last good one stays in force')
  t.equal(await list(), 'two')
  await service.stop()
})

t.test('K95: a scan of no date is refused: what it has found must not be ignored', async (t) => {
  for (const at of ['2026-13-01', '2026-11-20T10Z', '2026-11-20T25:00:00Z', '2026-11-20T10:00']) {
    t.throws(() => parseScans('scans.json', JSON.stringify({ 'sha256:1': [scanOf('low'), scanOf('critical', at)] }, undefined, 1)),
      { message: /^scans\.json:\d+: "?sha256:1"?\[1\]\.scanned_at must be a date, or a date and time in UTC$/ }, at)
  }
  t.equal(parseScans('scans.json', JSON.stringify({ 'sha256:1': [scanOf('low', '2026-11-20'), scanOf('low', '2026-11-20T10:00Z')] })).size, 1)
})
