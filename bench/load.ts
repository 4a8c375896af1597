import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export interface Request {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Makes it a POST of JSON. */
  readonly body?: string
}

export interface Measured {
  readonly requests: number
  /** Of the time between request and answer, in milliseconds. */
  readonly p99: number
}

export const CONNECTIONS = 32

/** Limit for one run, in milliseconds. */
const DEADLINE_MS = 60_000

const HEAD_END = '\r\n\r\n'
const STATUS = { start: 'HTTP/1.1 '.length, end: 'HTTP/1.1 200'.length } as const
const CONTENT_LENGTH = /\r\ncontent-length: (\d+)/i

/**
 * Sends a number of requests, or requests for some time. Each connection sends the next request after the answer to the last;
 * of several requests to one server, by turns.
 *
 * The client uses bare sockets. A client slower than the server, as autocannon is, leaves the server with single requests. The
 * CPU time of polling then hides the cost of a request.
 * @throws if a status is neither 200 nor 304, if the server ends a connection, or after DEADLINE_MS
 */
export async function load (request: Request | readonly [Request, ...Request[]], bound: { readonly requests: number } | { readonly milliseconds: number }): Promise<Measured> {
  const requests = 'url' in request ? [request] as const : request
  const { hostname, port } = new URL(requests[0].url)
  const messages = requests.map(requestBytes)
  let sentCount = 0
  const times: number[] = []
  const end = 'milliseconds' in bound ? performance.now() + bound.milliseconds : Number.POSITIVE_INFINITY
  let left = 'requests' in bound ? bound.requests : Number.POSITIVE_INFINITY
  let failure: Error | undefined

  function converse (socket: Socket): void {
    let received: Buffer | undefined
    let sent = 0
    function next (): void {
      if (left <= 0 || failure !== undefined || performance.now() >= end) {
        socket.destroy()
        return
      }
      left--
      sent = performance.now()
      socket.write(messages[sentCount++ % messages.length] ?? '')
    }
    socket.on('data', (chunk) => {
      received = received === undefined ? chunk : Buffer.concat([received, chunk])
      const length = answerLength(received)
      if (length === undefined || received.length < length) return
      if (received.length > length) failure ??= new Error(`more than one answer from ${requests[0].url}`)
      const status = received.toString('latin1', STATUS.start, STATUS.end)
      if (status !== '200' && status !== '304') failure ??= new Error(`${status} from ${requests[0].url} under load`)
      times.push(performance.now() - sent)
      received = undefined
      next()
    })
    socket.on('error', (error) => { failure ??= error })
    socket.on('end', () => { failure ??= new Error(`${requests[0].url} ended a connection under load`) })
    next()
  }

  const sockets = Array.from({ length: CONNECTIONS }, () => connect({ host: hostname, port: Number(port), noDelay: true }))
  const closed = sockets.map((socket) => once(socket, 'close'))
  const deadline = setTimeout(() => {
    failure ??= new Error(`${requests[0].url} under load takes more than ${DEADLINE_MS} ms`)
    for (const socket of sockets) socket.destroy()
  }, DEADLINE_MS)
  for (const socket of sockets) socket.once('connect', () => { converse(socket) })
  await Promise.allSettled(closed)
  clearTimeout(deadline)
  if (failure !== undefined) throw failure
  return { requests: times.length, p99: percentile(times, 0.99) }
}

function requestBytes ({ url, headers = {}, body }: Request): Buffer {
  const { host, pathname, search } = new URL(url)
  const all = {
    host,
    ...headers,
    ...body !== undefined && { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${body === undefined ? 'GET' : 'POST'} ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`)
}

/** Bytes of head and body; undefined if the head is incomplete. */
function answerLength (bytes: Buffer): number | undefined {
  const head = bytes.indexOf(HEAD_END)
  if (head === -1) return undefined
  const body = Number(CONTENT_LENGTH.exec(bytes.toString('latin1', 0, head))?.[1] ?? 0)
  return head + HEAD_END.length + body
}

export function percentile (values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(share * values.length)] ?? Number.NaN
}
