/**
 * What the service answers, and what its commands print, on the example skills and on odd ones: a net for changes that
 * must not change it. `npm run golden` compares, `UPDATE=1 npm run golden` writes the record anew.
 */
import { appendFileSync, existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { runProcess, startProcess } from '../helper/process.ts'
import { writeOddSkills } from './odd-skills.ts'
import { answerLines, ask, differences, Normaliser, textLines } from './record.ts'
import { ACCESS_REQUESTS, EDITED_REQUESTS, EXAMPLE_REQUESTS, type GoldenRequest, MISSING_REQUESTS, ODD_REQUESTS } from './requests.ts'

const RECORD = new URL('answers.txt', import.meta.url)

t.setTimeout(600_000)

t.test('what the service answers and its commands print is what is recorded', { timeout: 580_000 }, async (t) => {
  const folder = realpathSync(t.testdir())
  writeOddSkills(folder)
  const normaliser = new Normaliser()
  normaliser.add(folder, '<dir>')
  const tokens = await writeAccess(t, folder, normaliser)
  const places = { cwd: folder, env: { HOME: folder, STATE_DIR: join(folder, 'state') } }

  const start = async (...args: string[]) => {
    const service = await startProcess(t, { ...places, args })
    normaliser.add(new URL(service.url).host, '<host>')
    return service
  }
  const examples = await start('skills')
  const odd = await start('odd', 'more', '--personal', 'own', '--allow-links', 'elsewhere')
  const missing = await start('./not-there')
  const access = await start('odd', 'skills', '--personal', 'own', '--access', 'access.yaml', '--metrics-port', '0')
  const callers = [{}, ...['{token:alice}', '{token:ops}'].map((key) => ({ authorization: `Bearer ${tokens[key]}` }))]
  await Promise.all([ready(examples.url), ready(odd.url), ...callers.map((headers) => ready(access.url, headers))])

  const parts = await Promise.all([
    section('examples', examples.url, EXAMPLE_REQUESTS, normaliser, {}),
    section('odd', odd.url, ODD_REQUESTS, normaliser, {}),
    section('missing', missing.url, MISSING_REQUESTS, normaliser, {}),
    section('access', access.url, ACCESS_REQUESTS, normaliser, tokens),
    commands(t, places, examples.port, normaliser)
  ])
  const old = await revisionOf(odd.url, 'plain')
  const events = await eventsOf(odd.url, () => { appendFileSync(join(folder, 'odd/plain/docs/guide.md'), 'More.\n') })
  const edited = await section('edited', odd.url, EDITED_REQUESTS, normaliser, { '{old}': old })
  const record = [...parts.flat(), `== events of an edit\n${normaliser.apply(events).trim()}`, ...edited]

  const found = `${record.join('\n')}\n`
  if (process.env['UPDATE'] === '1') writeFileSync(RECORD, found)
  const wanted = existsSync(RECORD) ? readFileSync(RECORD, 'utf8') : ''
  const different = differences(wanted, found)
  t.equal(different.length, 0, 'UPDATE=1 writes the record anew', { differences: different.join('\n') })
})

/** Waits until the service has read all skills, watches them, and knows the revision of what this caller sees. */
async function ready (url: string, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  for (const path of ['/readyz', '/.well-known/agent-skills/index.json', '/.well-known/skills/index.json']) {
    while ((await ask(url, { method: 'GET', path, headers })).status !== 200) await sleep(50)
  }
  while ((await ask(url, { method: 'GET', path: '/readyz', headers })).body.includes('"watcher":{"status":"starting"')) await sleep(50)
  while ((await ask(url, { method: 'GET', path: '/skills', headers })).headers['catalog-revision'] === undefined) await sleep(50)
}

async function revisionOf (url: string, name: string): Promise<string> {
  return JSON.parse((await ask(url, { method: 'GET', path: `/skills/${name}/files` })).body.toString()).revision
}

/** The answers to the requests, each below what was asked. `texts` are put in the place of their keys before a request is sent. */
async function section (title: string, url: string, requests: readonly GoldenRequest[], normaliser: Normaliser, texts: Readonly<Record<string, string>>): Promise<string[]> {
  const blocks: string[] = []
  const known = new Map(Object.entries(texts))
  const fill = (text: string) => [...known].reduce((filled, [key, value]) => filled.replaceAll(key, value), text)
  const asked = requests.map(({ path, headers }) => path + JSON.stringify(headers)).join()
  for (const [key, name = ''] of asked.matchAll(/\{revision:(.*?)\}/g)) known.set(key, await revisionOf(url, name))
  if (asked.includes('{artifact:calculator}')) {
    const { skills } = JSON.parse((await ask(url, { method: 'GET', path: '/.well-known/agent-skills/index.json' })).body.toString())
    known.set('{artifact:calculator}', skills.find(({ name }: { name: string }) => name === 'calculator').url)
  }
  if (asked.includes('{cursor}')) known.set('{cursor}', JSON.parse((await ask(url, { method: 'GET', path: '/catalog?limit=2' })).body.toString()).next_cursor)
  const times = new Map<string, number>()
  for (const request of requests) {
    const { method, path, headers = {}, body, shown = 300 } = request
    const answer = await ask(url, {
      method, path: fill(path), headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, fill(value)])), ...body !== undefined && { body }
    })
    if (answer.headers.etag !== undefined) known.set('{etag}', answer.headers.etag)
    const what = [method, path.length > 100 ? `${path.slice(0, 100)}… ${path.length}` : path, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)].join(' | ')
    const sent = body === undefined || body.length === 0 ? '' : ` | ${body.length > 200 ? `${body.toString('utf8').slice(0, 200)}… ${body.length}` : JSON.stringify(body.toString()).slice(1, -1).replaceAll('\\"', '"')}`
    const asking = `${title} | ${what}${sent}`.replaceAll('\n', '\\n')
    const time = (times.get(asking) ?? 0) + 1
    times.set(asking, time)
    const lines = path.startsWith('/openapi.') && answer.status === 200
      ? [`${answer.status} ${answer.headers['content-type'] ?? ''}`]
      : answerLines(answer, answer.status >= 400 ? 700 : shown, normaliser)
    blocks.push([`== ${asking}${time > 1 ? ` (${time})` : ''}`, ...lines].join('\n'))
  }
  return blocks
}

/** What a stream of events says of an edit, from its beginning to the event. */
async function eventsOf (url: string, edit: () => void): Promise<string> {
  return await new Promise((resolve, reject) => {
    let text = ''
    let edited = false
    const asked = get(`${url}/events`, (response) => {
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
        if (!edited && text.includes('id:')) {
          edited = true
          edit()
        }
        if (/event: .*\ndata: .*\n\n/.test(text)) {
          asked.destroy()
          resolve(text.replaceAll('\n\n', '\n'))
        }
      }).on('error', () => {})
    }).on('error', reject)
  })
}

/** An access file with two tokens and a link, made by the command for it. */
async function writeAccess (t: Test, folder: string, normaliser: Normaliser): Promise<Readonly<Record<string, string>>> {
  const made = await Promise.all([['alice', '--group', 'team'], ['ops', '--group', 'all', '--scope', 'skills:read', '--scope', 'metrics:read'], ['laptops', '--link', '--group', 'team']].map(async (args) => {
    const { stdout } = await runProcess(t, { args: ['token', ...args] })
    return { secret: /sk[sl]_[\w-]+/.exec(stdout)?.[0] ?? '', line: /^ *- (\{.*)$/m.exec(stdout)?.[1] ?? '' }
  }))
  const [alice, ops, link] = made
  for (const [index, { secret, line }] of made.entries()) {
    normaliser.add(secret, `<secret ${index + 1}>`)
    normaliser.add(/[\da-f]{64}/.exec(line)?.[0] ?? '', `<hash ${index + 1}>`)
  }
  writeFileSync(join(folder, 'access.yaml'), `tokens:
  - ${alice?.line}
  - ${ops?.line}
links:
  - ${link?.line}
rules:
  - { groups: [anonymous], roots: [skills], skills: [calculator, w*] }
  - { groups: [team], roots: [odd], skills: [plain, linked, bad-yaml] }
  - { groups: [team], roots: [own] }
  - { groups: [all] }
`)
  return { '{token:alice}': alice?.secret ?? '', '{token:ops}': ops?.secret ?? '', '{link}': link?.secret ?? '' }
}

/** Exit codes and outputs of the commands. */
async function commands (t: Test, places: { readonly cwd: string, readonly env: Readonly<Record<string, string>> }, port: number, normaliser: Normaliser): Promise<string[]> {
  const lines: readonly (readonly string[])[] = [
    ['version'], ['help'], ['help', 'serve'], ['help', 'validate'], ['help', 'nope'], ['lock', '--help'], ['-v'],
    ['validate', 'skills'], ['validate', 'odd'], ['validate', 'odd', '--target', 'all', '--quiet'], ['validate', 'odd', '--format', 'json'], ['validate', 'odd', '--format', 'sarif'], ['validate', 'odd', '--format', 'github'], ['validate', 'odd/colon'],
    ['validate', 'odd/colon', '--target', 'all'], ['validate', 'odd/crlf/SKILL.md'], ['validate', 'odd/colon', '--fix', '--dry-run'], ['validate', 'skills', '--fail-on', 'info', '--target', 'all'], ['validate', 'not-there'], ['validate', 'outside'],
    ['validate', 'skills', '--target', 'nope'], ['validate', 'skills', '--format', 'nope'], ['validate', '--nope'],
    ['lock', 'skills', '--out', 'skills.lock'], ['lock', 'skills', '--out', 'skills.lock'], ['lock', 'not-there'], ['lock', 'odd', '--out', 'odd.lock'],
    ['access', 'access.yaml', 'odd', 'skills', 'own'], ['access', 'access.yaml', 'odd', 'skills', 'own', '--as', 'alice'], ['access', 'access.yaml', 'odd', 'skills', 'own', '--as', 'anonymous'], ['access', 'access.yaml', 'odd', 'skills', 'own', '--skill', 'plain'],
    ['access', 'access.yaml', 'odd', '--as', 'nobody'], ['access', 'not-there.yaml'],
    ['export', 'out', 'skills'], ['export', 'out', 'skills', '--prune'], ['export', 'odd-out', 'odd'], ['verify', 'skills/calculator'], ['sign', 'skills/calculator'], ['sync'], ['sync', 'skills'],
    ['healthcheck', '--port', String(port)], ['healthcheck', '--port', '1'], ['completion', 'bash'], ['completion', 'zsh'], ['completion', 'fish'],
    ['nope'], ['skills/calculator'], ['skills', '--port', 'x'], ['skills', '--log-level', 'loud'], ['skills', '--nope'], ['skills', '--access', 'not-there.yaml'], ['skills', '--port', '70000']
  ]
  const blocks: string[] = []
  normaliser.add(`port ${port}`, 'port <port>')
  const times = new Map<string, number>()
  for (const args of lines) {
    const { code, stdout, stderr } = await runProcess(t, { ...places, args })
    const title = `== command | ${args.map((arg) => arg === String(port) ? '<port>' : arg).join(' ')}`
    const time = (times.get(title) ?? 0) + 1
    times.set(title, time)
    blocks.push([`${title}${time > 1 ? ` (${time})` : ''}`, `${code}`, ...[stdout, stderr].flatMap((text) => text === '' ? [] : textLines(normaliser.apply(text), 1500))].join('\n'))
  }
  for (const file of ['skills.lock', 'odd.lock']) blocks.push([`== file | ${file}`, ...textLines(existsSync(join(places.cwd, file)) ? readFileSync(join(places.cwd, file), 'utf8') : 'not there', 1500)].join('\n'))
  for (const out of ['out', 'odd-out']) {
    if (!existsSync(join(places.cwd, out))) continue
    const files = readdirSync(join(places.cwd, out), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name)).sort()
    const tree = files.map((file) => `${file.slice(places.cwd.length + 1)} ${textLines(readFileSync(file, 'latin1'), 0)[0] ?? ''}`)
    blocks.push([`== tree | ${out}`, ...tree.map((line) => normaliser.apply(line).trim())].join('\n'))
  }
  return blocks
}
