import { setTimeout as sleep } from 'node:timers/promises'
import { createHash } from 'node:crypto'
import { Agent, type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import type { GoldenRequest } from './requests.ts'

const HEADERS = [
  'content-type', 'content-encoding', 'cache-control', 'vary', 'etag', 'location', 'allow', 'retry-after', 'content-disposition', 'content-range', 'accept-ranges', 'www-authenticate', 'catalog-revision', 'skill-revision',
  'content-security-policy', 'access-control-allow-origin'
]

/** Texts that differ from run to run, and what stands for them in the record. */
export class Normaliser {
  readonly #texts: (readonly [string | RegExp, string])[] = [
    [/"requestId":"[^"]*"/g, '"requestId":"…"'],
    [/"generation":\d+/g, '"generation":0'],
    [/^retry: \d+/gm, 'retry: 0'],
    [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, '<time>'],
    [/"(listed|body|all_files)":\d+/g, '"$1":0'],
    [/"method":"estimate[^"]*"/g, '"method":"…"'],
    [/"commit":"[0-9a-f]{40}",/g, ''],
    [/^(\d+\.\d+\.\d+) \([0-9a-f]{12}\)/gm, '$1']
  ]

  add (text: string, name: string): void {
    if (text !== '') this.#texts.unshift([text, name])
  }

  apply (text: string): string {
    return this.#texts.reduce((normal, [from, to]) => normal.replaceAll(from, to), text)
  }
}

export interface GoldenAnswer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

const agent = new Agent({ keepAlive: true })

export async function ask (url: string, asked: GoldenRequest): Promise<GoldenAnswer> {
  const { method, path, headers = {}, body } = asked
  const { hostname, port, host } = new URL(url)
  const sent = request({ agent, hostname, port, method, path, headers: { host, ...headers, ...body !== undefined && { 'content-length': Buffer.byteLength(body) } } })
  const answered = new Promise<IncomingMessage>((resolve, reject) => sent.once('response', resolve).once('error', reject))
  sent.end(body)
  const response = await answered
  const answer = { status: response.statusCode ?? 0, headers: response.headers, body: await buffer(response) }
  // A machine that runs other tests meanwhile delays the event loop of the service for longer than it accepts.
  if (answer.status !== 503 || !answer.body.includes('"code":"overloaded"')) return answer
  await sleep(100)
  return await ask(url, asked)
}

const READABLE = /^(?:text\/|application\/(?:json|problem\+json|yaml|javascript)|image\/svg)/

/** An answer as lines of the record. */
export function answerLines ({ status, headers, body }: GoldenAnswer, shown: number, normaliser: Normaliser): string[] {
  const type = String(headers['content-type'] ?? '')
  const said = HEADERS.flatMap((name) => headers[name] === undefined ? [] : [`${name}: ${headerText(name, String(headers[name]))}`])
  const decoded = decode(body, headers['content-encoding'])
  const isPage = type.startsWith('text/html') && String(headers['content-security-policy'] ?? '').includes('frame-ancestors')
  const isMetrics = type.startsWith('text/plain; version=')
  const text = isMetrics ? decoded.toString().split('\n').filter((line) => line.startsWith('# TYPE')).sort().join('\n') : isPage ? `title: ${/<title>(.*?)<\/title>/s.exec(decoded.toString())?.[1] ?? ''}` : READABLE.test(type) ? decoded.toString() : bytesText(decoded)
  return [`${status} ${normaliser.apply(said.join(' | '))}`, ...decoded.length === 0 ? [] : textLines(normaliser.apply(text), shown)]
}

/** A text on one line, its digest in front when it is too long. */
export function textLines (text: string, shown: number): string[] {
  const oneLine = text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, (control) => JSON.stringify(control).slice(1, -1))
  return [oneLine.length <= shown ? oneLine : `[${digest(Buffer.from(text))}, ${text.length}] ${oneLine.slice(0, shown)}`]
}

function bytesText (bytes: Buffer): string {
  return `[${digest(bytes)}, ${bytes.length} bytes]`
}

function digest (bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 12)
}

/** What of a header is promised: of a tag that it is weak or strong, of `Vary` its names, of a policy that it sandboxes. */
function headerText (name: string, value: string): string {
  if (name === 'etag') return value.startsWith('W/') ? 'weak' : 'strong'
  if (name === 'vary') return value.toLowerCase().split(/, */).sort().join(', ')
  if (name === 'content-security-policy') return value.includes('sandbox') ? 'sandbox' : "default-src 'none'".concat(value.includes('unsafe-eval') ? ' unsafe-eval' : '')
  return value
}

function decode (body: Buffer, encoding: string | undefined): Buffer {
  if (body.length === 0) return body
  if (encoding === 'gzip') return gunzipSync(body)
  if (encoding === 'br') return brotliDecompressSync(body)
  return body
}

/** The first differences of two records, block by block, with what was asked. */
export function differences (wanted: string, found: string, most = 12): string[] {
  const [before, now] = [blocks(wanted), blocks(found)]
  const changed = [...new Set([...before.keys(), ...now.keys()])].filter((title) => before.get(title) !== now.get(title))
  const shown = changed.slice(0, most).flatMap((title) => [title, ...cut(before.get(title), now.get(title), '-'), ...cut(now.get(title), before.get(title), '+')])
  return changed.length > most ? [...shown, `… and ${changed.length - most} more`] : shown
}

function blocks (record: string): Map<string, string> {
  return new Map(record.split(/\n(?== )/).map((block) => {
    const [title = '', ...rest] = block.split('\n')
    return [title, rest.join('\n')]
  }))
}

/** The lines that the other does not have, each from a little before the first difference. */
function cut (text: string | undefined, other: string | undefined, mark: string): string[] {
  if (text === undefined) return []
  const others = other?.split('\n') ?? []
  return text.split('\n').flatMap((line, index) => {
    const twin = others[index] ?? ''
    if (line === twin) return []
    let same = 0
    while (same < line.length && line[same] === twin[same]) same++
    const from = Math.max(0, same - 40)
    return [`  ${mark} ${from > 0 ? '…' : ''}${line.slice(from, from + 240)}`]
  })
}
