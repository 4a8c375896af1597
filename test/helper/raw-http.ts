/**
 * HTTP over a bare socket, for what no HTTP client would send: paths with dot segments, malformed heads, slow or
 * broken-off requests. Bytes go out exactly as given; answers come back parsed, several on one connection if need be.
 *
 *   const response = await rawRequest(url, request('GET', '/skills/../../etc/passwd'))
 *   response.status, response.headers['content-type'], response.json()
 */

import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export interface RawResponse {
  readonly status: number
  /** Names in lower case; several lines of one name are joined by `, `. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Header lines as they came, without their line ends. */
  readonly headerLines: readonly string[]
  /** Decoded from chunks. */
  readonly body: Buffer
  readonly text: string
  json (): unknown
}

export interface RequestHead {
  /** Default `localhost`; null sends no Host line. */
  readonly host?: string | null
  /** Further header lines, `Name: value`. */
  readonly headers?: readonly string[]
  /** Sent with its Content-Length, unless `headers` holds one or a Transfer-Encoding. */
  readonly body?: string | Buffer
  /** Default `1.1`. */
  readonly version?: string
}

/** The bytes of a request; nothing in the target or the headers is checked, escaped or normalised. */
export function request (method: string, target: string,
  { host = 'localhost', headers = [], body, version = '1.1' }: RequestHead = {}): Buffer {
  const lines = [`${method} ${target} HTTP/${version}`]
  if (host !== null) lines.push(`Host: ${host}`)
  lines.push(...headers)
  const hasFraming = headers.some((line) => /^(?:content-length|transfer-encoding):/i.test(line))
  if (body !== undefined && !hasFraming) lines.push(`Content-Length: ${Buffer.byteLength(body)}`)
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), Buffer.from(body ?? '')])
}

/** A request with a JSON body: a value, or the JSON text itself. */
export function jsonRequest (method: string, target: string, body: unknown, head: RequestHead = {}): Buffer {
  return request(method, target, {
    ...head,
    headers: ['Content-Type: application/json', ...head.headers ?? []],
    body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  })
}

export interface ReadOptions {
  /** Whether the request is HEAD, whose answer has no body. */
  readonly head?: boolean
  /** Longest wait, in milliseconds; default a minute. */
  readonly timeoutMs?: number
}

/** Sends bytes on a connection of their own, reads one answer and closes. */
export async function rawRequest (url: string, bytes: string | Buffer,
  options: ReadOptions = {}): Promise<RawResponse> {
  const connection = await openRaw(url)
  try {
    connection.send(bytes)
    const head = options.head ?? Buffer.from(bytes).subarray(0, 5).equals(Buffer.from('HEAD '))
    return await connection.response({ ...options, head })
  } finally {
    connection.destroy()
  }
}

/** Repeats a request until it is not refused for overload (K68), which a busy machine causes. */
export async function askUntilServed (url: string, bytes: Buffer): Promise<RawResponse> {
  for (;;) {
    const response = await rawRequest(url, bytes)
    if (response.status !== 503 || !response.text.includes('"code":"overloaded"')) return response
    await sleep(20)
  }
}

/** Opens a connection to a server's origin, for example `http://127.0.0.1:8080`. */
export async function openRaw (url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), noDelay: true })
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
  })
  return new RawConnection(socket)
}

export class RawConnection {
  readonly socket: Socket
  #chunks: Buffer[] = []
  #size = 0
  #ended = false
  #wake: () => void = () => {}

  constructor (socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk)
      this.#size += chunk.length
      this.#wake()
    })
    const end = () => {
      this.#ended = true
      this.#wake()
    }
    // A server that closes while bytes are still arriving resets the connection: what had arrived counts.
    socket.on('error', end).on('end', end).on('close', end)
  }

  /** All bytes that arrived and that no `response()` has returned. */
  get received (): Buffer {
    const [first, ...others] = this.#chunks
    // One buffer may have several answers: it is not copied for each.
    const joined = first !== undefined && others.length === 0 ? first : Buffer.concat(this.#chunks)
    this.#chunks = [joined]
    return joined
  }

  /** Whether the server has closed its side. */
  get ended (): boolean { return this.#ended }

  /** Writes text as Latin-1: one byte for each character. */
  send (bytes: string | Buffer): this {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
    return this
  }

  /**
   * Returns the next final answer; interim ones (1xx) are skipped. Fails when the connection ends in the middle of it.
   */
  async response ({ head = false, timeoutMs }: ReadOptions = {}): Promise<RawResponse> {
    for (;;) {
      // A large body is joined and parsed once, not for each chunk.
      let wanted = 0
      const look = () => {
        if (this.#size < wanted && !this.#ended) return undefined
        const parsed = parseResponse(this.received, head, this.#ended)
        if (typeof parsed !== 'number') return parsed
        wanted = parsed
        return undefined
      }
      const { response, length } = await this.#until('a response', look, timeoutMs)
      this.#chunks = [this.received.subarray(length)]
      this.#size -= length
      if (response.status >= 200) return response
    }
  }

  /** Resolves when the server has closed its side of the connection. */
  async closed ({ timeoutMs }: Pick<ReadOptions, 'timeoutMs'> = {}): Promise<void> {
    await this.#until('the end of the connection', () => this.#ended ? true : undefined, timeoutMs)
  }

  destroy (): void {
    this.socket.destroy()
  }

  async #until<T> (what: string, look: () => T | undefined, timeoutMs = 60_000): Promise<T> {
    const deadline = performance.now() + timeoutMs
    for (;;) {
      const found = look()
      if (found !== undefined) return found
      const left = deadline - performance.now()
      if (this.#ended || left <= 0) {
        const received = JSON.stringify(this.received.toString('latin1', 0, 500))
        throw new Error(
          `${this.#ended ? 'The connection ended' : 'Time ran out'} before ${what}; received: ${received}`)
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
}

interface ParsedResponse {
  readonly response: RawResponse
  /** Length of the answer in bytes. */
  readonly length: number
}

/** Parses the answer at the start of `bytes`; while it is incomplete, returns how many bytes it has at least. */
function parseResponse (bytes: Buffer, isHead: boolean, ended: boolean): ParsedResponse | number {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return bytes.length + 1
  const [statusLine = '', ...headerLines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const match = /^HTTP\/1\.1 (\d{3})/.exec(statusLine)
  if (match === null) throw new Error(`Not a status line: ${JSON.stringify(statusLine)}`)
  const status = Number(match[1])
  const headers = parseHeaders(headerLines)

  const start = headEnd + 4
  const hasBody = !isHead && status >= 200 && status !== 204 && status !== 304
  const framed = hasBody ? parseBody(bytes.subarray(start), headers, ended) : { body: Buffer.alloc(0), length: 0 }
  if (typeof framed === 'number') return start + framed
  // Copied, since the bytes are a view of all that the connection has received.
  const body = Buffer.from(framed.body)
  return {
    response: {
      status,
      headers,
      headerLines,
      body,
      get text () { return body.toString('utf8') },
      json: () => JSON.parse(body.toString('utf8'))
    },
    length: start + framed.length
  }
}

function parseHeaders (lines: readonly string[]): Record<string, string | undefined> {
  const headers: Record<string, string | undefined> = Object.create(null)
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon < 1) throw new Error(`Not a header line: ${JSON.stringify(line)}`)
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
  }
  return headers
}

type Framed = Pick<RawResponse, 'body'> & { readonly length: number }

function parseBody (bytes: Buffer, headers: RawResponse['headers'], ended: boolean): Framed | number {
  if (headers['transfer-encoding']?.toLowerCase() === 'chunked') return parseChunks(bytes)
  const announced = headers['content-length']
  if (announced === undefined) return ended ? { body: bytes, length: bytes.length } : bytes.length + 1
  const length = Number(announced)
  return bytes.length < length ? length : { body: bytes.subarray(0, length), length }
}

function parseChunks (bytes: Buffer): Framed | number {
  const chunks: Buffer[] = []
  let position = 0
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', position)
    if (lineEnd === -1) return bytes.length + 1
    const size = Number.parseInt(bytes.toString('latin1', position, lineEnd), 16)
    const start = lineEnd + 2
    if (bytes.length < start + size + 2) return start + size + 2
    if (size === 0) return { body: Buffer.concat(chunks), length: start + 2 }
    chunks.push(bytes.subarray(start, start + size))
    position = start + size + 2
  }
}
