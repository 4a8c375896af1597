import { on } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { newSecret } from '../helper/guarded.ts'
import { freePort } from '../helper/proxies.ts'
import { startProcess } from '../helper/process.ts'
import { openRaw, request } from '../helper/raw-http.ts'
import { skill } from '../helper/skills.ts'

const GUESSES = 1_000
/** As many as may wait on one connection. */
const AT_ONCE = 16

/** Refused requests of one address that are answered at once, and lines of the audit log for one address in a minute. */
const BURST = 60
const AUDIT_LINES = 20

/** Never the secret itself, which may have these characters at this place. */
function altered (secret: string, characters: string): string {
  const text = `${secret.slice(0, 10)}${characters}${secret.slice(10 + characters.length)}`
  return text === secret ? altered(secret, `${characters}0`) : text
}

const HEAD_START = 'HTTP/1.1 200 '.length - 1

t.test('K67: of a thousand guessed tokens and links, a few dozen are looked at, and a good token from the same address goes on working', async (t) => {
  const [ann, link] = [newSecret('ann', 'groups: [docs]'), newSecret('laptops', 'groups: [docs]', 'link')]
  const folder = t.testdir({ docs: { guide: skill('guide') } })
  const at = (name: string) => join(folder, name)
  writeFileSync(at('access.yaml'), `tokens:\n  - ${ann.entry}\nlinks:\n  - ${link.entry}\nrules:\n  - { groups: [docs] }\n`)
  const metricsPort = String(await freePort())
  const service = await startProcess(t, { args: [at('docs'), '--access', at('access.yaml')], env: { METRICS_PORT: metricsPort, AUDIT_LOG: at('audit.log'), LOG_FORMAT: 'json' } })

  const guesses = Array.from({ length: GUESSES }, (_, index) => {
    // Every other one has the form of a secret; the rest are the good ones with one character changed, and texts of any form.
    const other = (secret: string) => index % 4 < 2 ? newSecret('x', '', secret.startsWith('skl_') ? 'link' : 'token').text : altered(secret, String(index))
    return index % 2 === 0
      ? request('GET', '/skills', { headers: [`Authorization: Bearer ${other(ann.text)}`] })
      : request('GET', `/t/${other(link.text)}/.well-known/skills/index.json`)
  })
  const caller = await openRaw(service.url)
  const guesser = connect(service.port, '127.0.0.1')
  const chunks = on(guesser, 'data')
  t.teardown(() => { guesser.destroy() })
  t.teardown(() => { caller.destroy() })
  const statuses = new Map<number, number>()
  for (let start = 0; start < GUESSES; start += AT_ONCE) {
    guesser.write(Buffer.concat(guesses.slice(start, start + AT_ONCE)))
    caller.send(request('GET', '/skills/guide', { headers: [`Authorization: Bearer ${ann.text}`] }))
    const { status, body } = await caller.response()
    t.equal(status, 200, body.toString())
    for (let left = Math.min(AT_ONCE, GUESSES - start), text = ''; left > 0;) {
      text += String((await chunks.next()).value)
      const heads = Array.from(text.matchAll(/HTTP\/1\.1 (\d{3}) /g), ([, status]) => Number(status))
      for (const status of heads) statuses.set(status, (statuses.get(status) ?? 0) + 1)
      left -= heads.length
      // The head of an answer may come in two parts.
      text = text.slice(-HEAD_START).replace(/HTTP\/1\.1 \d{3} /g, '')
    }
  }
  t.equal((await fetch(`${service.url}/t/${link.text}/.well-known/skills/index.json`)).status, 200, 'and a good link')
  const refused = statuses.get(401) ?? 0
  // While they come, one more is answered each second.
  t.ok(refused >= BURST && refused < 2 * BURST, `${refused} looked at`)
  t.strictSame([...statuses.keys()].sort(), [401, 429])

  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
  const value = (series: string) => Number(metrics.split('\n').find((line) => line.startsWith(`${series} `))?.slice(series.length + 1))
  t.equal(value('skillserve_rate_limited_total{rule="failures"}'), GUESSES - refused)
  await service.stop()
  const audit = readFileSync(at('audit.log'), 'utf8').trim().split('\n').map((line) => JSON.parse(line) as { readonly event: string, readonly target: { readonly count?: number } })
  const failures = audit.filter(({ event }) => event === 'auth.failed')
  t.ok(failures.length <= 2 * (AUDIT_LINES + 1), `${failures.length} lines`)
  t.ok(failures.some(({ target: { count = 0 } }) => count > 0), 'and a count of the rest')
  const everything = `${JSON.stringify(service.log())}${readFileSync(at('audit.log'), 'utf8')}${metrics}`
  t.notMatch(everything, /sk[sl]_/)
})

t.test('K67: who loops with a token that lacks the scope, with one of an issuer that is away, or with credentials that are none, comes to a limit too, and the logs say who it is', async (t) => {
  const meter = newSecret('meter', 'groups: [docs], scopes: [metrics:read]')
  const away = `http://127.0.0.1:${await freePort()}`
  const jwt = [{ alg: 'ES256' }, { iss: away, text: 'long enough to be that of a JWT' }, 'signature'].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  const folder = t.testdir({ docs: { guide: skill('guide') } })
  const at = (name: string) => join(folder, name)
  writeFileSync(at('access.yaml'), `tokens:\n  - ${meter.entry}\nissuers:\n  - { issuer: ${away}, audiences: [a] }\nrules:\n  - { groups: [docs] }\n`)
  const service = await startProcess(t, { args: [at('docs'), '--access', at('access.yaml')], env: { AUDIT_LOG: at('audit.log'), LOG_FORMAT: 'json', LIMIT_RATE: '1', LIMIT_BURST: '1', TRUSTED_PROXIES: '127.0.0.1', PUBLIC_URL: 'https://skills.example' } })
  for (const [authorization, refusal] of [[`Bearer ${meter.text}`, 403], ['Bearer', 400], [`Bearer ${jwt}`, 503]] as const) {
    const connection = await openRaw(service.url)
    t.teardown(() => { connection.destroy() })
    const asked = request('GET', '/skills/guide', { headers: [`Authorization: ${authorization}`, `X-Forwarded-For: 192.0.2.${refusal % 97}`] })
    const statuses = new Set<number>()
    for (let sent = 0; sent < 10 * AT_ONCE; sent += AT_ONCE) {
      connection.send(Buffer.concat(Array.from({ length: AT_ONCE }, () => asked)))
      for (let i = 0; i < AT_ONCE; i++) statuses.add((await connection.response()).status)
    }
    t.strictSame([...statuses], [refusal, 429])
    const metadata = await connection.send(request('GET', '/.well-known/oauth-protected-resource', { headers: [`X-Forwarded-For: 192.0.2.${refusal % 97}`] })).response()
    t.equal(metadata.status, 200, 'where it can get a token is no secret, and has no limit')
  }
  await service.stop()
  t.match(service.log().find(({ status }) => status === 403), { principal: 'meter', client: '192.0.2.15' })
  t.match(readFileSync(at('audit.log'), 'utf8'), /"outcome":"denied","principal":\{"kind":"token","id":"token:meter"[^\n]*"source":\{"address":"192\.0\.2\.15","peer":"127\.0\.0\.1"/)
})
