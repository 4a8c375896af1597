/**
 * What the service answers and what its commands print, on the example skills and on odd ones. `answers.txt` holds both
 * what is asked and what came: a block begins with `== SERVICE METHOD PATH | HEADER: VALUE | … | BODY` or `== command
 * ARGUMENTS`. `npm run golden` compares, `UPDATE=1 npm run golden` writes the answers anew, also of lines that were
 * added.
 *
 * In a request `{etag}` is the tag of the answer before, `{revision:NAME}` the skill's revision, `{old}` that of
 * `plain` before its edit, `{artifact}` the address of one in the index, `{cursor}` one of the catalog, `{alice}`,
 * `{ops}` and `{link}` secrets.
 */
import { createHash } from 'node:crypto'
import { appendFileSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { runProcess, startProcess } from '../helper/process.ts'
import { askUntilServed, type RawResponse, request } from '../helper/raw-http.ts'
import { writeOddSkills } from './odd-skills.ts'

const RECORD = new URL('answers.txt', import.meta.url)
const SHOWN_CHARACTERS = 300
const HINT = 'if the change is meant: UPDATE=1 npm run golden'

/** The arguments of each service. `edited` is `odd` after a skill has been edited. */
const SERVICES = {
  examples: ['skills'],
  odd: ['odd', 'more', '--personal', 'own', '--allow-links', 'elsewhere'],
  missing: ['./not-there'],
  access: ['odd', 'skills', '--personal', 'own', '--access', 'access.yaml', '--metrics-port', '0']
}

const HEADERS = [
  'content-type', 'content-encoding', 'cache-control', 'vary', 'etag', 'location', 'allow', 'retry-after',
  'content-disposition', 'content-range', 'accept-ranges', 'www-authenticate', 'catalog-revision', 'skill-revision',
  'content-security-policy', 'access-control-allow-origin'
]
const READABLE = /^(?:text\/|application\/(?:json|problem\+json|yaml|javascript)|image\/svg)/

/** What differs from run to run, and what stands for it in the record. */
const replacements: Array<readonly [string | RegExp, string]> = [
  [/"requestId":"[^"]*"/g, '"requestId":"…"'],
  [/"generation":\d+/g, '"generation":0'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, '<time>'],
  [/"(listed|body|all_files)":\d+/g, '"$1":0'],
  [/"method":"estimate[^"]*"/g, '"method":"…"'],
  [/"commit":"[0-9a-f]{40}",/g, ''],
  [/^(\d+\.\d+\.\d+) \([0-9a-f]{12}\)/gm, '$1']
]

const record = readFileSync(RECORD, 'utf8').trimEnd().split(/\n(?=== )/)
const titles = record.map((block) => block.split('\n', 1)[0] ?? '')
const titlesOf = (kind: string) => titles.filter((title) => title.startsWith(`== ${kind} `))

t.setTimeout(280_000)

t.test('what the service answers and its commands print is what is recorded', async (t) => {
  const folder = realpathSync(t.testdir())
  writeOddSkills(folder)
  // Hosts of code get paths from the root of the checkout.
  replacements.unshift([folder, '<dir>'], [relative(process.cwd(), folder), '<dir>'])
  const secrets = await writeAccess(t, folder)
  const places = { cwd: folder, env: { HOME: folder, STATE_DIR: join(folder, 'state') } }
  const [examples, odd, missing, access] = await Promise.all(Object.values(SERVICES).map(async (args) => {
    const service = await startProcess(t, { ...places, args })
    replacements.unshift([new URL(service.url).host, '<host>'])
    return service
  })) as [Service, Service, Service, Service]
  await Promise.all([ready(examples), ready(odd),
    ...['', '{alice}', '{ops}'].map((caller) => ready(access, secrets[caller]))])

  const found = new Map<string, string>()
  async function run (kind: string, service: Service, values: Readonly<Record<string, string>> = {}): Promise<void> {
    for (const [title, answer] of await answers(service, titlesOf(kind), values)) found.set(title, answer)
  }
  await Promise.all([run('examples', examples), run('odd', odd), run('missing', missing),
    run('access', access, secrets)])
  for (const title of titlesOf('command')) {
    const args = title.replace('== command ', '').replace('{port}', String(examples.port)).split(' ')
    const { code, stdout, stderr } = await runProcess(t, { ...places, args })
    found.set(title,
      [`${code}`, ...[stdout, stderr].filter((text) => text !== '').map((text) => shown(normal(text)))].join('\n'))
  }
  const old = await revisionOf(odd, 'plain')
  appendFileSync(join(folder, 'odd/plain/docs/guide.md'), 'More.\n')
  await run('edited', odd, { '{old}': old })

  if (process.env['UPDATE'] === '1') {
    writeFileSync(RECORD,
    `${titles.map((title) => `${title}\n${found.get(title)}`).join('\n')}\n`)
  } else for (const [index, title] of titles.entries()) t.equal(`${title}\n${found.get(title)}`, record[index], HINT)
})

type Service = Awaited<ReturnType<typeof startProcess>>

async function get ({ url }: Service, path: string, headers: readonly string[] = []): Promise<RawResponse> {
  return await askUntilServed(url, request('GET', path, { headers }))
}

/** Waits until the service has read all skills, watches them, and knows the revision of what a caller sees. */
async function ready (service: Service, token?: string): Promise<void> {
  const headers = token === undefined ? [] : [`Authorization: Bearer ${token}`]
  while ((await get(service, '/.well-known/agent-skills/index.json', headers)).status !== 200) await sleep(50)
  while ((await get(service, '/readyz', headers)).text.includes('"watcher":{"status":"starting"')) await sleep(50)
  while ((await get(service, '/skills', headers)).headers['catalog-revision'] === undefined) await sleep(50)
}

async function revisionOf (service: Service, name: string): Promise<string> {
  return ((await get(service, `/skills/${name}/files`)).json() as { readonly revision: string }).revision
}

/** Sends each request and gives what came, as it is recorded. */
async function answers (service: Service, requests: readonly string[],
  given: Readonly<Record<string, string>>): Promise<Map<string, string>> {
  const values = { ...given }
  const text = requests.join('\n')
  for (const [key, name = ''] of text.matchAll(/\{revision:(.*?)\}/g)) values[key] = await revisionOf(service, name)
  if (text.includes('{artifact}')) {
    const { skills } = (await get(service, '/.well-known/agent-skills/index.json')).json() as {
      readonly skills: ReadonlyArray<{ readonly url: string }>
    }
    values['{artifact}'] = skills[1]?.url ?? ''
  }
  if (text.includes('{cursor}')) {
    values['{cursor}'] = ((await get(service, '/catalog?limit=2')).json() as {
      readonly next_cursor: string
    }).next_cursor
  }
  const found = new Map<string, string>()
  for (const title of requests) {
    const filled = Object.entries(values).reduce((filled, [key, value]) => filled.replaceAll(key, value), title)
    const [, method = '', path = '', ...parts] = /^== \w+ (\w+) (\S+)(.*)$/.exec(filled) ?? []
    const rest = parts.join('').split(' | ').slice(1)
    const headers = rest.filter((part) => /^[a-z-]+: /.test(part))
    const body = rest.slice(headers.length).join(' | ').replaceAll('\\n', '\n')
    const host = headers.find((line) => line.startsWith('host: '))?.slice('host: '.length)
    if (rest.length > headers.length && !headers.some((line) => line.startsWith('content-type'))) {
      headers.push('content-type: application/json')
    }
    const head = {
      headers: headers.filter((line) => !line.startsWith('host: ')),
      ...host !== undefined && { host },
      ...method === 'POST' && { body }
    }
    const answer = await askUntilServed(service.url, request(method, path, head))
    if (answer.headers.etag !== undefined) values['{etag}'] = answer.headers.etag
    found.set(title, answerText(answer))
  }
  return found
}

function answerText ({ status, headers, text, body }: RawResponse): string {
  const said = HEADERS.flatMap((name) =>
    headers[name] === undefined ? [] : [`${name}: ${headerText(name, headers[name])}`])
  const content = contentOf(headers['content-type'] ?? '', headers, text, body)
  return [`${status} ${said.join(' | ')}`, ...content === '' ? [] : [content]].map((line) => shown(normal(line))).join(
    '\n')
}

/**
 * Of the OpenAPI document and of what is compressed nothing, of a page the title, of metrics their types, of bytes a
 * digest.
 */
function contentOf (type: string, headers: RawResponse['headers'], text: string, body: Buffer): string {
  if (body.length === 0 || headers['content-encoding'] !== undefined || /^(?:\{"openapi"|openapi):/.test(text)) {
    return ''
  }
  if (type.startsWith('text/plain; version=')) {
    return text.split('\n').filter((line) => line.startsWith('# TYPE')).sort().join('\n')
  }
  const isPage = type.startsWith('text/html') && headers['content-security-policy']?.includes('sandbox') !== true
  if (isPage) return `title: ${/<title>(.*?)<\/title>/s.exec(text)?.[1] ?? ''}`
  return READABLE.test(type) ? text : `${digest(body)}, ${body.length} bytes`
}

/**
 * What of a header is promised: of a tag that it is weak or strong, of `Vary` its names, of a policy that it sandboxes.
 */
function headerText (name: string, value = ''): string {
  if (name === 'etag') return value.startsWith('W/') ? 'weak' : 'strong'
  if (name === 'vary') return value.toLowerCase().split(/, */).sort().join(', ')
  if (name === 'content-security-policy') return value.includes('sandbox') ? 'sandbox' : "default-src 'none'"
  return value
}

function normal (text: string): string {
  return replacements.reduce((normal, [from, to]) => normal.replaceAll(from, to), text)
}

/** A text on one line; of a long one its beginning, length and digest. */
function shown (text: string): string {
  const line = text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, (control) => JSON.stringify(control).slice(1, -1))
  if (line.length <= SHOWN_CHARACTERS) return line
  return `${line.slice(0, SHOWN_CHARACTERS)}… (${text.length}, ${digest(text)})`
}

function digest (content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex').slice(0, 12)
}

/** An access file with two tokens and a link, made by the command for it; gives the secrets. */
async function writeAccess (t: Test, folder: string): Promise<Readonly<Record<string, string>>> {
  const made = await Promise.all([
    ['alice', '--group', 'team'], ['ops', '--group', 'all', '--scope', 'skills:read', '--scope', 'metrics:read'],
    ['link', '--link', '--group', 'team']
  ].map(async (args) => {
    const { stdout } = await runProcess(t, { args: ['token', ...args] })
    return { secret: /sk[sl]_[\w-]+/.exec(stdout)?.[0] ?? '', line: /^ *- (\{.*)$/m.exec(stdout)?.[1] ?? '' }
  }))
  const [alice, ops, link] = made
  for (const { secret, line } of made) {
    replacements.unshift([secret, '<secret>'], [/[\da-f]{64}/.exec(line)?.[0] ?? '', '<hash>'])
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
  return { '{alice}': alice?.secret ?? '', '{ops}': ops?.secret ?? '', '{link}': link?.secret ?? '' }
}
