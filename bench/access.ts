import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { createSecret, digestOf } from '../src/access/secret.ts'
import type { Bench } from './bench.ts'
import { makeSkills } from './fixtures.ts'
import { type Costs, measureCosts, microseconds, ratioOf, type Subject, WARM_UP_REQUESTS } from './costs.ts'
import type { Request } from './load.ts'
import { type Server, startSkillserve } from './process.ts'
import { watching } from './readiness.ts'
import { median, type Row, spread } from './table.ts'

const SKILLS = 100
const MANY_SKILLS = 10_000
const VIEWS = 50
const ROUNDS = 3
const MOST = 1.15

const READ_DEADLINE_MS = 300_000
const READ_POLL_MS = 100

const AUDIENCE = 'https://skills.example/mcp'

/** Measures what callers cost: a token of the access file, and an access token of an issuer. */
export async function measureAccess ({ run, cores, folder: parent }: Bench): Promise<Row[]> {
  const folder = join(parent, 'access')
  const root = join(folder, 'skills')
  const [name = ''] = await makeSkills(root, SKILLS, 2)
  const { issuer, token: accessToken, close } = await startIssuer()
  run.teardown(close)
  const token = createSecret('token')
  const file = join(folder, 'access.yaml')
  writeFileSync(file, `tokens: [{ name: bench, sha256: ${digestOf(token)}, groups: [all] }]\nissuers: [{ issuer: '${issuer}', audiences: ['${AUDIENCE}'] }]\nrules: [{ groups: [all] }]\n`)
  const questions: Readonly<Record<string, { readonly path: string, readonly body?: string }>> = {
    'GET /skills/:name': { path: `/skills/${name}` },
    'GET /skills': { path: '/skills' },
    'POST tool-call get_skill': { path: '/agent/tool-call', body: JSON.stringify({ id: 'call_1', type: 'function', function: { name: 'get_skill', arguments: JSON.stringify({ skill_name: name }) } }) }
  }
  const rounds: Readonly<Record<string, Array<Costs<'open' | 'token' | 'jwt'>>>> = Object.fromEntries(Object.keys(questions).map((what) => [what, []]))
  for (let round = 1; round <= ROUNDS; round++) {
    // New processes in each round, because two processes of the same program differ by up to 10 %.
    const open = await startSkillserve(run, [root], { log: join(folder, 'open.log'), wrap: cores.besideLoad })
    const guarded = await startSkillserve(run, ['--access', file, root], { log: join(folder, 'guarded.log'), wrap: cores.besideLoad, env: { LIMITS: 'off' } })
    await watching(open)
    for (const [what, { path, body }] of Object.entries(questions)) {
      run.part(`callers, round ${round} of ${ROUNDS}: ${what}`)
      const ask = (server: Server, secret?: string): Subject =>
        ({ server, request: { url: server.url + path, ...body !== undefined && { body }, ...secret !== undefined && { headers: { authorization: `Bearer ${secret}` } } }, warmUp: WARM_UP_REQUESTS })
      rounds[what]?.push(await measureCosts({ open: ask(open), token: ask(guarded, token), jwt: ask(guarded, accessToken) }))
    }
    await open.stop()
    await guarded.stop()
  }
  return Object.entries(rounds).flatMap(([what, costs]) =>
    [toRow(`${what}, with a token`, 'without callers', costs, 'token', 'open'), toRow(`${what}, with an access token (JWT)`, 'without callers', costs, 'jwt', 'open')])
}

/** Measures what many views of many skills cost. */
export async function measureViews ({ run, cores, folder: parent }: Bench): Promise<Row[]> {
  run.part(`callers: ${VIEWS} views of ${MANY_SKILLS} skills`)
  const folder = join(parent, 'views')
  const root = join(folder, 'skills')
  const names = await makeSkills(root, MANY_SKILLS, 1, { linked: true })
  const tokens = Array.from({ length: VIEWS }, () => createSecret('token'))
  const file = join(folder, 'access.yaml')
  writeFileSync(file, `tokens:\n${tokens.map((token, index) => `  - { name: t${index}, sha256: ${digestOf(token)}, groups: [g${index}] }\n`).join('')}rules:\n${
    // Each sees nine of ten.
    tokens.map((_, index) => `  - { groups: [g${index}], skills: [${Array.from({ length: 10 }, (_, digit) => digit).filter((digit) => digit !== index % 10).map((digit) => `'skill-*${digit}'`).join()}] }\n`).join('')}`)
  // Another skill for each view, which the first view has too: both services are asked for the same skills.
  const skillOf = (view: number) => names[10 * view + (view % 10 < 9 ? view % 10 + 1 : 1)] ?? ''
  const [first = '', ...others] = tokens
  const start = (log: string) => startSkillserve(run, ['--access', file, root], { log: join(folder, log), wrap: cores.besideLoad, env: { LIMITS: 'off' } })
  const subject = (server: Server, tokenOf: (view: number) => string): Subject => {
    const request = (view: number): Request => ({ url: `${server.url}/skills/${skillOf(view)}`, headers: { authorization: `Bearer ${tokenOf(view)}` } })
    return { server, request: [request(0), ...others.map((_, index) => request(index + 1))], warmUp: WARM_UP_REQUESTS }
  }
  const [one, many] = [await start('one-view.log'), await start('views.log')]
  await read(one, [first])
  await read(many, [first])
  const before = many.rss()
  const cpu = many.cpu()
  await read(many, others)
  const megabytes = (many.rss() - before) / 1_048_576
  const seconds = (many.cpu() - cpu) / 1_000
  const rounds: Array<Costs<'one' | 'many'>> = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await measureCosts({ one: subject(one, () => first), many: subject(many, (view) => tokens[view] ?? '') }))
  await one.stop()
  await many.stop()
  return [
    toRow(`GET /skills/:name, ${VIEWS} views by turns, ${MANY_SKILLS} skills`, 'a service that one view is used of', rounds, 'many', 'one'),
    {
      what: `${VIEWS - 1} more views of ${MANY_SKILLS} skills, until each has its lists and its revision`,
      against: '',
      target: '–',
      measured: `${megabytes.toFixed(0)} MB, ${seconds.toFixed(1)} s of CPU time`,
      note: 'all of the process after it, less before',
      pass: undefined
    }
  ]
}

/** Reads the lists of each view, until they are there with the revision of what the view has: then nothing more goes on for it. */
async function read (server: Server, tokens: readonly string[]): Promise<void> {
  for (const token of tokens) for (const path of ['/skills', '/catalog']) await (await ask(path, token)).arrayBuffer()
  for (const token of tokens) {
    for (const deadline = performance.now() + READ_DEADLINE_MS; ; await sleep(READ_POLL_MS)) {
      const response = await ask('/skills', token)
      await response.arrayBuffer()
      if (response.headers.has('catalog-revision')) break
      if (performance.now() > deadline) throw new Error('a view has no revision')
    }
  }

  async function ask (path: string, token: string): Promise<Response> {
    return await fetch(server.url + path, { headers: { authorization: `Bearer ${token}` } })
  }
}

function toRow<Name extends string> (what: string, against: string, rounds: ReadonlyArray<Costs<Name>>, over: Name, under: Name): Row {
  const ratios = rounds.map((costs) => ratioOf(costs, over, under))
  const ratio = median(ratios)
  const note = `${microseconds(rounds, over).toFixed(1)} µs of CPU time, ${microseconds(rounds, under).toFixed(1)} µs`
  return { what, against, target: `≤ ${MOST}`, measured: `${ratio.toFixed(2)} (${spread(ratios)})`, note, pass: ratio <= MOST }
}

/** An issuer with one key, and an access token of it. */
async function startIssuer (): Promise<{ readonly issuer: string, readonly token: string, close (): void }> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const jwk = { ...await exportJWK(publicKey), kid: 'k1', alg: 'ES256' }
  const server = createServer((request, response) => {
    response.end(JSON.stringify(request.url === '/keys' ? { keys: [jwk] } : { issuer, jwks_uri: `${issuer}/keys` }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const token = await new SignJWT({ scope: 'skills:read', groups: ['all', 'staff', 'engineering'] }).setProtectedHeader({ alg: 'ES256', kid: 'k1', typ: 'at+jwt' })
    .setIssuer(issuer).setAudience(AUDIENCE).setSubject('ann').setIssuedAt().setExpirationTime('1h').sign(privateKey)
  return { issuer, token, close: () => { server.close() } }
}
