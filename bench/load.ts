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

/** A number of requests, or requests for some time. */
export type Bound = { readonly requests: number } | { readonly milliseconds: number }

/** Opens connections to a server, sends requests, and closes them: see `Clients.send`. */
export async function load (request: Request | readonly [Request, ...Request[]], bound: Bound): Promise<Measured> {
  const clients = await Clients.connect(request)
  try {
    return await clients.send(bound)
  } finally {
    clients.close()
  }
}

/**
 * Clients of one server, which stay connected. They use bare sockets. A client slower than the server, as autocannon is, leaves the server
 * with single requests. The CPU time of polling then hides the cost of a request.
 */
export class Clients {
  readonly #url: string
  readonly #messages: readonly Buffer[]
  readonly #sockets: readonly Socket[]
  #sent = 0
  #failure: Error | undefined
  #onEnd: () => void = () => {}

  /** @param request of several requests to one server, by turns */
  static async connect (request: Request | readonly [Request, ...Request[]]): Promise<Clients> {
    const requests = 'url' in request ? [request] as const : request
    const { hostname, port } = new URL(requests[0].url)
    const sockets = Array.from({ length: CONNECTIONS }, () => connect({ host: hostname, port: Number(port), noDelay: true }))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    return new Clients(requests, sockets)
  }

  private constructor (requests: readonly [Request, ...Request[]], sockets: readonly Socket[]) {
    this.#url = requests[0].url
    this.#messages = requests.map(requestBytes)
    this.#sockets = sockets
    for (const socket of sockets) {
      socket.on('error', (error) => { this.#fail(error) })
      socket.on('end', () => { this.#fail(new Error(`${this.#url} ended a connection under load`)) })
    }
  }

  /**
   * Each connection sends the next request after the answer to the last.
   * @throws if a status is neither 200 nor 304, if the server ends a connection, or after DEADLINE_MS
   */
  async send (bound: Bound): Promise<Measured> {
    const times: number[] = []
    const end = 'milliseconds' in bound ? performance.now() + bound.milliseconds : Number.POSITIVE_INFINITY
    let left = 'requests' in bound ? bound.requests : Number.POSITIVE_INFINITY
    const deadline = setTimeout(() => { this.#fail(new Error(`${this.#url} under load takes more than ${DEADLINE_MS} ms`)) }, DEADLINE_MS)
    const ended = new Promise<void>((resolve) => { this.#onEnd = resolve })
    const mayGoOn = (): boolean => left-- > 0 && this.#failure === undefined && performance.now() < end
    await Promise.race([ended, Promise.all(this.#sockets.map((socket) => this.#converse(socket, mayGoOn, times)))])
    clearTimeout(deadline)
    if (this.#failure !== undefined) throw this.#failure
    return { requests: times.length, p99: percentile(times, 0.99) }
  }

  close (): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #converse (socket: Socket, mayGoOn: () => boolean, times: number[]): Promise<void> {
    return new Promise((resolve) => {
      let received: Buffer | undefined
      let sent = 0
      const next = (): void => {
        if (!mayGoOn()) {
          socket.off('data', onData)
          resolve()
          return
        }
        sent = performance.now()
        socket.write(this.#messages[this.#sent++ % this.#messages.length] ?? '')
      }
      const onData = (chunk: Buffer): void => {
        received = received === undefined ? chunk : Buffer.concat([received, chunk])
        const length = answerLength(received)
        if (length === undefined || received.length < length) return
        if (received.length > length) this.#fail(new Error(`more than one answer from ${this.#url}`))
        const status = received.toString('latin1', STATUS.start, STATUS.end)
        if (status !== '200' && status !== '304') this.#fail(new Error(`${status} from ${this.#url} under load`))
        times.push(performance.now() - sent)
        received = undefined
        next()
      }
      socket.on('data', onData)
      next()
    })
  }

  #fail (failure: Error): void {
    this.#failure ??= failure
    this.close()
    this.#onEnd()
  }
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
