/**
 * Attacks that need time, size or many clients instead of odd input. Each throws at a wrong answer, and says what it
 * measured.
 */

import { createHash } from 'node:crypto'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { MAX_TEXT_FILE_BYTES } from '../../../src/core/shared/limits.ts'
import { MAX_TOOL_CALLS, MAX_TOOL_RESULTS_BYTES } from '../../../src/tools/limits.ts'
import { type AttackTarget, isAlive, mcpCall, startAttackTarget } from './attack-target.ts'
import type { ProcessOwner } from '../../helper/process.ts'
import {
  jsonRequest, openRaw, type RawConnection, rawRequest, type RawResponse, request
} from '../../helper/raw-http.ts'
import { skillText, until } from '../../helper/skills.ts'
import { startSwapper } from '../../helper/disk.ts'

const CANARY = 'CANARY-b81e02'
const PUBLIC = 'PUBLIC-55d0f1'
const SECRET = skillText('demo', CANARY).replace('What', CANARY)
/** Of the secret file: even this must not come out, in a manifest or as an ETag. */
const SECRET_DIGEST = createHash('sha256').update(SECRET).digest('hex')

const READERS = 8
/** How long a swap goes on at most, until some readers have met the file and some the link. */
const SWAP_DEADLINE_SECONDS = 60

/** One of the two states. */
const SWAP_STATUSES = new Set([200, 403, 404])

/** What is swapped with a link to the outside, in a skill of its own. */
const SWAPPED: Readonly<Record<string, { readonly what: string, readonly path: string }>> = {
  'swap-file': { what: 'a file', path: 'docs/a.md' },
  'swap-folder': { what: 'a folder on the way', path: 'docs' },
  'swap-main': { what: 'the main file', path: 'SKILL.md' },
  'swap-skill': { what: 'the skill folder', path: '' }
}

/** Each route that reads a file, lists files or tells of the main file. */
const questionsAbout = (name: string): readonly Buffer[] => [
  request('GET', `/skills/${name}/files/docs/a.md`),
  request('GET', `/skills/${name}/files/docs/a.md`, { headers: ['Accept: application/json'] }),
  jsonRequest('POST', '/agent/tools/read_file_in_skill', { skill_name: name, file_path: 'docs/a.md' }),
  jsonRequest('POST', '/agent/tool-call', { function: { name: 'get_skill', arguments: { skill_name: name } } }),
  mcpCall('resources/read', { uri: `skill://${name}/docs/a.md` }),
  request('GET', `/skills/${name}`),
  request('GET', `/skills/${name}/files`),
  request('GET', `/skills/${name}/archive.zip`),
  request('GET', `/catalog/${name}`),
  request('GET', '/catalog?q=what'),
  request('GET', `/.well-known/skills/${name}/docs/a.md`),
  request('GET', '/.well-known/agent-skills/index.json')
]

export interface SwapFigures {
  /** What was swapped. */
  readonly what: string
  readonly swaps: number
  readonly answers: number
  /** How many of them held what may be read, and how many refused. */
  readonly given: number
  readonly refused: number
}

/**
 * While a link to the outside is swapped in and out, readers on bare sockets ask every route.
 * @param seconds for each of the things that are swapped, and longer while no reader has met one of both
 */
export async function attackBySwaps (t: ProcessOwner, seconds: number): Promise<readonly SwapFigures[]> {
  const target = await startAttackTarget(t, { prepare: writeSwapTree })
  const all: SwapFigures[] = []
  for (const [name, { what, path }] of Object.entries(SWAPPED)) {
    const stop = await startSwapper(t, join(target.root, name, path), join(target.folder, `${name}-aside`),
      join(target.folder, `${name}-link`))
    const figures = { what, answers: 0, given: 0, refused: 0 }
    const begun = performance.now()
    const isOver = () => {
      const took = (performance.now() - begun) / 1_000
      return took > seconds && (took > SWAP_DEADLINE_SECONDS || (figures.given > 0 && figures.refused > 0))
    }
    await Promise.all(Array.from({ length: READERS },
      (_, reader) => readUntil(target, isOver, questionsAbout(name), reader, figures)))
    const swaps = await stop()
    if (figures.given === 0 || figures.refused === 0) {
      throw new Error(`the swap of ${what} was never met: ${JSON.stringify(figures)}`)
    }
    all.push({ ...figures, swaps })
  }
  const { code, stdout, stderr } = await target.stop()
  if (code !== 0 || stderr !== '' || stdout.includes(CANARY)) {
    throw new Error(`the service ended with ${code}: ${stderr}`)
  }
  return all
}

function writeSwapTree (root: string): void {
  const folder = join(root, '..')
  const outside = join(folder, 'outside/demo')
  writeDocuments(outside, SECRET, SECRET)
  for (const [name, { path }] of Object.entries(SWAPPED)) {
    writeDocuments(join(root, name), skillText(name, PUBLIC), PUBLIC)
    symlinkSync(join(outside, path), join(folder, `${name}-link`))
  }
}

function writeDocuments (folder: string, main: string, text: string): void {
  mkdirSync(join(folder, 'docs'), { recursive: true })
  writeFileSync(join(folder, 'SKILL.md'), main)
  writeFileSync(join(folder, 'docs/a.md'), text)
}

async function readUntil ({ url }: AttackTarget, isOver: () => boolean, questions: readonly Buffer[], reader: number,
  figures: {
    answers: number
    given: number
    refused: number
  }): Promise<void> {
  let connection = await openRaw(url)
  for (let turn = reader; !isOver(); turn++) {
    const question = questions[turn % questions.length] ?? Buffer.alloc(0)
    if (connection.ended) connection = await openRaw(url)
    const text = await answerTo(connection, question)
    if (text.includes(CANARY) || text.includes(SECRET_DIGEST)) {
      throw new Error(
        `the canary came out of ${question.toString('latin1').split('\r\n', 1)[0]}: ${text.slice(0, 1_000)}`)
    }
    figures.answers++
    if (text.includes(PUBLIC)) figures.given++
    if (/ 40[34] |Path traversal|not found/.test(text)) figures.refused++
  }
  connection.destroy()
}

/** Head and body; what came of an archive that a change has cut off (K53). */
async function answerTo (connection: RawConnection, question: Buffer): Promise<string> {
  try {
    const response = await connection.send(question).response()
    const { status, headerLines, text } = response
    if (!SWAP_STATUSES.has(status) && !isRestless(response)) throw new Error(`${status} ${text.slice(0, 500)}`)
    return [`HTTP/1.1 ${status} `, ...headerLines, text].join('\n')
  } catch (error) {
    if (!connection.ended) {
      throw new Error(`no answer to ${question.toString('latin1').split('\r\n', 1)[0]}`, { cause: error })
    }
    const cut = connection.received.toString('latin1')
    if (!cut.includes('application/zip')) throw error
    return cut
  }
}

/** K48: a skill of which no state holds for as long as reading takes. */
function isRestless ({ status, headers, text }: RawResponse): boolean {
  return status === 503 && text.includes('"code":"skill_changing"') && /^\d+$/.test(headers['retry-after'] ?? '')
}

function isOverloaded ({ status, headers, text }: RawResponse): boolean {
  return status === 503 && text.includes('"code":"overloaded"') && /^\d+$/.test(headers['retry-after'] ?? '')
}

export interface LoadFigures {
  /** What was asked, and how long the answer took, in milliseconds. */
  readonly took: Readonly<Record<string, number>>
  /** The longest turn of the event loop, in milliseconds, and the most memory before and after, in bytes. */
  readonly longestTurn: number
  readonly memoryBefore: number
  readonly memoryAfter: number
  /** The longest that another client waited for `/livez`, in milliseconds. */
  readonly waited: number
}

/** Of text that is JSON as it is, and that gets longer in it: two bytes, or six, for each. */
const FILLINGS: Readonly<Record<string, string>> = {
  'plain.txt': 'x', 'quotes.txt': '"', 'controls.txt': '\u0001', 'wide.txt': '\u6f22'
}

/**
 * As many calls as a request may have, each for a file as large as one may be; `clients` do it at the same time.
 * @param fillings what the files hold, by default everything in turn
 */
export async function attackByBatch (t: ProcessOwner, clients: number,
  fillings = Object.keys(FILLINGS)): Promise<LoadFigures> {
  const target = await startAttackTarget(t, {
    prepare: (root) => {
      for (const [name, unit] of Object.entries(FILLINGS)) {
        writeFileSync(join(root, 'demo', name), unit.repeat(Math.floor(MAX_TEXT_FILE_BYTES / Buffer.byteLength(unit))))
      }
    }
  })
  return await measure(target, async (took) => {
    for (const path of fillings) {
      const body = JSON.stringify(Array.from({ length: MAX_TOOL_CALLS },
        (_,
          id) => ({
          id: `call-${id}`,
          function: { name: 'read_file_in_skill', arguments: { skill_name: 'demo', file_path: path } }
        })))
      const begun = performance.now()
      const answers = await Promise.all(
        Array.from({ length: clients },
          () => rawRequest(target.url, jsonRequest('POST', '/agent/tool-call', body), { timeoutMs: 120_000 })))
      took[path] = performance.now() - begun
      // On a busy machine there may not be room for all of them at once (K68).
      const served = answers.filter((answer) => !isOverloaded(answer))
      if (served.length === 0) throw new Error('nobody was served')
      for (const { status, body, text } of served) {
        if (status !== 200) throw new Error(`${status} ${text.slice(0, 500)}`)
        const results = JSON.parse(body.toString()) as readonly object[]
        // The refusals of the calls past the limit come on top: a sentence each.
        if (results.length !== MAX_TOOL_CALLS || body.length > MAX_TOOL_RESULTS_BYTES + MAX_TOOL_CALLS * 1_024) {
          throw new Error(`${results.length} results, ${body.length} bytes`)
        }
      }
    }
  })
}

/** Routes that list skills, and those of a skill with many files. */
const ROUTES_OF_SKILLS = ['/skills', '/catalog?limit=500', '/agent/prompt', '/catalog?q=what',
  '/.well-known/skills/index.json', '/.well-known/agent-skills/index.json', '/readyz']
const ROUTES_OF_FILES = ['/skills/large/files', '/skills/large/files', '/skills/large/files/0/0.md', '/catalog/large',
  '/skills/large/archive.zip']

interface Sizes {
  readonly files?: number
  readonly skills?: number
}

/** So many skills, and one with so many files. */
export async function attackBySize (t: ProcessOwner, { files = 0, skills = 0 }: Sizes): Promise<LoadFigures> {
  const routes = [...files > 0 ? ROUTES_OF_FILES : [], ...ROUTES_OF_SKILLS]
  const target = await startAttackTarget(t, {
    prepare: (root) => {
      if (files > 0) writeFiles(join(root, 'large'), files)
      for (let index = 0; index < skills; index++) writeSkill(join(root, `skill-${index}`))
    }
  })
  return await measure(target, async (took) => {
    for (const [index, route] of routes.entries()) {
      const begun = performance.now()
      const { status, text } = await rawRequest(target.url, request('GET', route), { timeoutMs: 300_000 })
      took[routes.indexOf(route) === index ? route : `${route} again`] = performance.now() - begun
      if (status !== 200 && !(status === 413 && text.includes('"archive_too_large"'))) {
        throw new Error(`${route}: ${status} ${text.slice(0, 500)}`)
      }
      if (route === '/skills/large/files' && (JSON.parse(text) as { files: object[] }).files.length !== files + 1) {
        throw new Error('files are missing')
      }
    }
  })
}

function writeSkill (folder: string, change = (text: string) => text): void {
  mkdirSync(folder)
  writeFileSync(join(folder, 'SKILL.md'), change(skillText(folder.split('/').at(-1) ?? '')))
}

function writeFiles (folder: string, count: number): void {
  writeSkill(folder)
  for (let index = 0; index < count; index++) {
    const inner = join(folder, String(index % 100))
    if (index < 100) mkdirSync(inner)
    writeFileSync(join(inner, `${Math.floor(index / 100)}.md`), String(index))
  }
}

const LARGE_FILE_BYTES = 8_000_000
const SKILLS = 500
const DESCRIPTION = 'Does what nobody has asked for. '.repeat(20)

/** How often another client asks while the attackers wait. */
const QUESTIONS = 100

/** What one client sends at once, by what it asks for. */
export const PIPELINES: Readonly<Record<string, Buffer>> = {
  'a file of 8 MB': repeated(1_000, request('GET', '/skills/demo/files/large.bin')),
  'the largest page': repeated(900, request('GET', '/catalog?limit=500')),
  'a skill that is missing': repeated(350,
    jsonRequest('POST', '/agent/tool-call', { function: { name: 'Skill', arguments: { skill: 'missing' } } })),
  // Such a file is read, decoded and rendered for each call: four copies at a time.
  'a tool call for 8 MB': repeated(350,
    jsonRequest('POST', '/agent/tools/read_file_in_skill', { skill_name: 'demo', file_path: 'large.txt' })),
  'the shortest request': repeated(10_000, Buffer.from('GET / HTTP/1.1\r\n\r\n')),
  'the largest page, once': request('GET', '/catalog?limit=500')
}

/**
 * Clients send requests and read no answer. They go when another client has been answered a hundred times.
 * @param attacks of PIPELINES, one after the other against one service
 * @throws {Error} when a client costs more descriptors than its connection and one file
 */
export async function attackByPipelines (t: ProcessOwner, attacks: readonly string[], clients: number,
  heapMb?: number): Promise<LoadFigures> {
  const target = await startAttackTarget(t, { prepare: writeLargeTree, heapMb })
  // What the first answers load, and leave in memory, is no attack.
  if (!await isAlive(target.url)) throw new Error('the service is not alive')
  for (const warming of ['/catalog?limit=500', '/skills/demo/files/large.bin']) {
    await rawRequest(target.url, request('GET', warming, { headers: ['Range: bytes=0-9'] }))
  }
  await until(() => target.log().some(({ msg }) => msg === 'watching a skills folder'))
  return await measure(target, async () => {
    for (const what of attacks) await attackBy(PIPELINES[what] ?? '', target, clients)
  })
}

async function attackBy (bytes: Buffer | string, target: AttackTarget, clients: number): Promise<void> {
  const before = target.descriptors()
  const attackers = await Promise.all(Array.from({ length: clients }, () => openRaw(target.url)))
  for (const attacker of attackers) {
    attacker.socket.pause()
    attacker.send(bytes)
  }
  const other = await openRaw(target.url)
  for (let question = 0; question < QUESTIONS; question++) {
    const { status } = await other.send(request('GET', '/livez')).response({ timeoutMs: 60_000 })
    if (status !== 200) throw new Error(`/livez: ${status}`)
    const more = target.descriptors() - before
    // A few belong to files that are being read.
    if (more > 2 * clients + 5) throw new Error(`${more} descriptors for ${clients} clients`)
  }
  for (const each of [other, ...attackers]) each.destroy()
  await until(() => target.descriptors() <= before)
}

function repeated (count: number, bytes: Buffer): Buffer {
  return Buffer.concat(Array<Buffer>(count).fill(bytes))
}

function writeLargeTree (root: string): void {
  writeFileSync(join(root, 'demo/large.bin'), Buffer.alloc(LARGE_FILE_BYTES, 'x'))
  writeFileSync(join(root, 'demo/large.txt'), 'x'.repeat(LARGE_FILE_BYTES))
  for (let index = 0; index < SKILLS; index++) {
    const name = `skill-${index}`
    writeSkill(join(root, name), (text) => text.replace(/^description: .*$/m, `description: ${DESCRIPTION}`))
  }
}

/**
 * How long a client waits before it asks again whether the service lives, in milliseconds: little against any wait that
 * matters.
 */
const PROBE_MS = 10

/** Watches and threads that stay: their number does not depend on that of requests. */
const OPENED_AT_FIRST_USE = 10

/**
 * Meanwhile somebody else asks again and again whether the service lives.
 * @throws {Error} when descriptors do not come back
 */
async function measure (target: AttackTarget,
  attack: (took: Record<string, number>) => Promise<void>): Promise<LoadFigures> {
  const took: Record<string, number> = {}
  const connection = await openRaw(target.url)
  // What is loaded at the first request is no attack.
  await connection.send(request('GET', '/livez')).response()
  await target.longestTurn()
  const memoryBefore = target.peakMemory()
  const descriptors = target.descriptors()
  const over = new AbortController()
  let slowest = 0
  const asking = (async () => {
    while (!over.signal.aborted) {
      const begun = performance.now()
      await connection.send(request('GET', '/livez')).response({ timeoutMs: 60_000 })
      slowest = Math.max(slowest, performance.now() - begun)
      await pause(PROBE_MS)
    }
  })()
  try {
    await attack(took)
  } finally {
    over.abort()
    await asking
  }
  await until(() => target.descriptors() <= descriptors + OPENED_AT_FIRST_USE)
  connection.destroy()
  const longestTurn = await target.longestTurn()
  const memoryAfter = target.peakMemory()
  const { code, stderr } = await target.stop()
  if (code !== 0 || stderr !== '') throw new Error(`the service ended with ${code}: ${stderr}`)
  return { took, longestTurn, memoryBefore, memoryAfter, waited: slowest }
}
