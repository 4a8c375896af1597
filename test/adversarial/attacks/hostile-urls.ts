import t, { type Test } from 'tap'
import type { Files, Service } from '../../helper/build.ts'
import type { RawResponse } from '../../helper/raw-http.ts'

/** Lies outside the root, in a sibling with its prefix, and in what K8 hides: no answer may ever hold it. */
export const CANARY = 'CANARY-7f3a'

export const FILES: Files = {
  'README.md': CANARY,
  '.hidden': { 'SKILL.md': CANARY },
  '.git': { config: CANARY },
  demo: {
    'SKILL.md': '# Demo\n',
    references: { 'a.md': '# A\n' },
    '100%.txt': 'percent',
    'a b.md': 'blank',
    'é.md': 'nfc',
    'foo..bar.txt': 'dots',
    '.hidden.md': 'hidden',
    '.env': CANARY,
    '.env.example': 'example',
    '.git': { config: CANARY },
    '.github': { 'x.yml': 'x: 1' },
    modules: { x: { 'index.js': 'x' } },
    sub: { '.env': CANARY },
    'a+b.txt': 'plus',
    'a;b.txt': 'semicolon',
    'a,b@c!.txt': 'comma',
    'a?b#c.txt': 'question',
    '%2e%2e': 'two encoded dots',
    'empty.txt': '',
    up: t.fixture('symlink', '..'),
    'secret.txt': t.fixture('symlink', '../../outside/secret.txt')
  },
  'demo-evil': { 'x.md': 'evil' },
  é: { 'SKILL.md': 'nfc' },
  upper: { 'SKILL.MD': 'upper' }
}
export const SIBLINGS: Files = { 'skills-evil': { 'x.md': CANARY }, outside: { 'secret.txt': CANARY } }

/** What an answer must be; the sentence is compared where it is not left open. */
export interface Expected {
  readonly statuses: readonly number[]
  readonly error?: string
  readonly code?: string
}

export const name16 = (name: string): Expected =>
  ({ statuses: [400], code: 'invalid_skill_name', error: `Invalid skill name: '${name}'. Skill names must not contain '/', '\\', or '..'` })
export const NAME18: Expected = { statuses: [400], code: 'invalid_skill_name', error: 'Invalid skill name: must not contain special characters' }
export const noSkill = (name: string): Expected => ({ statuses: [404], code: 'skill_not_found', error: `Skill '${name}' not found in skills folder` })
export const TRAVERSAL: Expected = { statuses: [403], code: 'path_traversal', error: 'Path traversal detected: cannot access files outside skill folder' }
export const noFile = (file: string): Expected => ({ statuses: [404], code: 'file_not_found', error: `File '${file}' not found in skill 'demo'` })
export const isDirectory = (file: string): Expected => ({ statuses: [404], code: 'file_is_directory', error: `Cannot read file '${file}': is a directory` })
export const BADURL: Expected = { statuses: [400], code: 'bad_url' }
export const NOROUTE: Expected = { statuses: [404], code: 'route_not_found' }

/** Sends the target as GET and as HEAD, and checks what holds for every answer. */
export async function attack (t: Test, service: Service, target: string, expected: Expected): Promise<RawResponse> {
  const shown = JSON.stringify(target.length > 80 ? `${target.slice(0, 80)}… (${target.length})` : target)
  const response = await service.raw('GET', target)
  const { status, text } = response
  t.ok(expected.statuses.includes(status), `${shown}: ${status}`, { expected, text: text.slice(0, 400) })
  t.notMatch(response.headerLines.join('\n') + text, CANARY)
  if (status >= 400) {
    t.notMatch(text, /\bE(?:NOENT|ACCES|ISDIR|NAMETOOLONG|LOOP|INVAL|NOTDIR)\b|errno|\n +at |node:/, `${shown}: nothing of the inside`)
    const problem = response.json() as { readonly code: string, readonly error: string, readonly detail: string }
    t.notOk((problem.error + problem.detail).includes(service.folder), `${shown}: no server path`)
    if (expected.code !== undefined) t.equal(problem.code, expected.code, shown)
    if (expected.error !== undefined) t.equal(problem.error, expected.error, shown)
  }
  const head = await service.raw('HEAD', target)
  t.equal(head.status, status, `HEAD ${shown}`)
  t.equal(head.body.length, 0)
  return response
}

/** One entry for each request, each of one line, and nothing in them is the canary. */
export async function checkLog (t: Test, service: Service): Promise<void> {
  // All but the one by which the helper reads the document that it holds answers against.
  const entries = () => service.log().filter(({ msg, url }) => /^request (?:completed|aborted|refused)$/.test(String(msg)) && url !== '/openapi.json')
  // The last entry is written when its connection has closed.
  while (entries().length < service.sent) await service.logged('request ')
  t.equal(entries().length, service.sent, 'one entry for each request')
  const text = service.logText()
  t.notMatch(text, CANARY)
  t.notOk([...text].some((character) => character < ' ' && character !== '\n'), 'control characters are escaped')
  t.ok(service.log().every(({ level }) => Number(level) < 50), 'no request was an error of the service')
}
