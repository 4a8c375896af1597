/** Sends attacks to a running service over bare sockets, and checks the answers by what holds for every one of them. */

import zlib from 'node:zlib'
import { problems } from '../../../src/schemas/problem.ts'
import type { Attack } from './attack-inputs.ts'
import { CANARY } from './attack-tree.ts'
import { responseCheckOf } from '../../helper/openapi.ts'
import { openRaw, rawRequest, type RawResponse, request } from '../../helper/raw-http.ts'

const INSIDE =
  /\bE(?:NOENT|ACCES|PERM|ISDIR|NAMETOOLONG|LOOP|INVAL|NOTDIR|IO|MFILE)\b|errno|\\?\n +at |node:|node_modules/

/** What tools tell of folders on purpose (K23, K30). */
const TOLD_FOLDERS = /Path: |Base directory for this skill: /

/** Statuses from 500 on that say something of the request, or of the skills folder. */
const REFUSALS = new Set([501, 503, 505])

const PROBLEM_CODES = new Set(Object.keys(problems))

/**
 * @param url origin of the service
 * @param folder the one that holds its root, and no answer
 */
export async function createAttacker (url: string, folder: string) {
  const check = responseCheckOf((await rawRequest(url, request('GET', '/openapi.json'))).text)
  const statuses = new Map<number, number>()
  let sent = 0

  return {
    /** Answers by status. */
    statuses,
    get sent () { return sent },
    /** @throws {Error} that says what is wrong with the answer */
    async attack (attack: Attack): Promise<void> {
      sent++
      const response = unpacked(await send(url, attack))
      const { status, text, headerLines } = response
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      const fail = (reason: string): never => { throw new Error(`${reason}: ${status} ${text.slice(0, 500)}`) }
      const { method, target, head } = attack
      if (headerLines.some((line) => line.includes(CANARY)) || text.includes(CANARY)) fail('the canary came out')
      if (headerLines.some((line) => /^(?:x-injected|set-cookie)\b|evil/i.test(line))) {
        fail('the request wrote a header')
      }
      if (status >= 500 && !REFUSALS.has(status)) fail('an error of the service')
      if (status < 400 && mustBeRefused(attack)) fail('a request that means two things was answered')
      const isToolAnswer = method === 'POST' && status === 200
      if (status >= 400 || isToolAnswer) {
        const asked = `${target}${decoded(target)}${String(head.body ?? '')}`
        if (text.includes(folder) && !asked.includes(folder.slice(1)) && !(isToolAnswer && TOLD_FOLDERS.test(text))) {
          fail('a path of the server')
        }
        if (INSIDE.test(text) && !INSIDE.test(asked)) fail('something of the inside')
      }
      if (target.split('?', 1)[0] === '/mcp') checkMcp(method, response, fail)
      // Node itself answers an expectation that it does not know. A stream of events has no end; what was read of it is
      // its head.
      else if (status !== 417) {
        check({
          method: isStream(response) ? 'HEAD' : method,
          target,
          status,
          headers: response.headers,
          body: isStream(response) ? Buffer.alloc(0) : response.body
        })
      }
    }
  }
}

/**
 * Requests that another server on the way may read in another sense: for another host, of another length, or in another
 * version.
 */
function mustBeRefused ({ target, head: { headers = [], version = '1.1' } }: Attack): boolean {
  return /^http:\/\/evil\./i.test(target) || !/^1\.[01]$/.test(version) ||
    headers.some((line) => /^transfer-encoding: (?!chunked$)/i.test(line))
}

/** A problem quotes a parameter as it was meant. Byte by byte, since other parameters may not be UTF-8. */
function decoded (target: string): string {
  return target.replaceAll(/%[\da-f]{2}/gi, (escape) => String.fromCharCode(Number.parseInt(escape.slice(1), 16)))
}

async function send (url: string, { method, target, head }: Attack): Promise<RawResponse> {
  const bytes = request(method, target, head)
  if (!target.startsWith('/events')) return await rawRequest(url, bytes)
  const connection = await openRaw(url)
  try {
    const response = await connection.send(bytes).response({ head: true })
    return isStream(response) ? response : await rawRequest(url, bytes)
  } finally {
    connection.destroy()
  }
}

/** Not in Node 20. */
const { zstdDecompressSync } = zlib as typeof zlib & { readonly zstdDecompressSync?: (bytes: Buffer) => Buffer }

const UNPACKERS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  br: (bytes) => zlib.brotliDecompressSync(bytes),
  gzip: (bytes) => zlib.gunzipSync(bytes),
  ...zstdDecompressSync && { zstd: zstdDecompressSync }
}

/** With the body as it was before it was compressed: what must not come out must not come out so either. */
function unpacked (response: RawResponse): RawResponse {
  const coding = response.headers['content-encoding']
  if (coding === undefined || response.body.length === 0) return response
  const unpack = UNPACKERS[coding]
  if (unpack === undefined) throw new Error(`an unknown coding: ${coding}`)
  const body = unpack(response.body)
  const text = body.toString()
  return { ...response, body, text, json: () => JSON.parse(text) as unknown }
}

function isStream ({ headers }: RawResponse): boolean {
  return headers['content-type'] === 'text/event-stream'
}

/** What `/mcp` may answer: a problem, a JSON-RPC message, or nothing to a notification. */
function checkMcp (method: string, { status, headers, text }: RawResponse, fail: (reason: string) => never): void {
  if (status === 202 || method === 'HEAD') return
  const type = headers['content-type'] ?? ''
  if (type === 'application/problem+json') {
    const problem = JSON.parse(text) as { readonly code: string, readonly status: number }
    if (!PROBLEM_CODES.has(problem.code) || problem.status !== status) fail('a problem that is not documented')
    return
  }
  const message = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text) as {
    readonly jsonrpc?: string
    readonly result?: object
    readonly error?: { readonly code: number, readonly message: string }
  }
  if (message.jsonrpc !== '2.0' || (message.result === undefined) === (message.error === undefined)) {
    fail('no JSON-RPC answer')
  }
  // The SDK gives the same code to parameters of `initialize` and the like that are not as they should be.
  if (message.error?.message.startsWith('Internal error')) fail('an internal error')
}
