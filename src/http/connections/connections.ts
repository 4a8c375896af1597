import { type RequestListener, Server, type ServerOptions, type ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { fitHeap } from '../../core/shared/heap.ts'
import { LINGER_MS, MAX_WAITING_REQUESTS } from '../limits.ts'
import { Garbage } from '../overload/garbage.ts'

/**
 * Requests behind others that are read in one iteration of the event loop. Node takes some 10 µs to parse each, and a hundred
 * connections can deliver 300,000 of them.
 */
const MAX_READ_AHEAD = 4_000

/** What a request that waits takes with its response, in bytes. Most of them are garbage when their connection is closed. */
const WAITING_BYTES = 8_192

/**
 * The open connections of one server, and the answers that each is owed.
 *
 * The requests of one connection are handled one after the other. Node parses all requests of a packet at once, some 3,000 of
 * them, and calls the handler for each. Their answers would wait in memory for the first one, and their files would stay open
 * after the client has left. Node closes no response that has not reached its socket. A client without pipelining never has
 * a request that waits, and costs one comparison.
 */
export class Connections {
  /**
   * Responses from the one that is being sent to the latest, in the order of their requests. One that has closed is forgotten. It would
   * keep its request, with a body that may be large, for as long as its connection waits for the next.
   */
  readonly #responses = new Map<Socket, ServerResponse[]>()
  /** How many of them have not been handed to the handler, for connections that have any. */
  readonly #waiting = new Map<Socket, number>()
  readonly #maxWaiting: number
  readonly #lingerMs: number
  readonly #garbage = new Garbage()
  #waitingCount = 0
  #readAhead = 0
  #late: ServerResponse | undefined

  /**
   * @param maxWaiting requests that wait on all connections together; beyond it the connection with the most is closed
   * @param lingerMs time in which a body that was refused may end, in milliseconds
   */
  constructor (maxWaiting = fitHeap(MAX_WAITING_REQUESTS), lingerMs = LINGER_MS) {
    this.#maxWaiting = maxWaiting
    this.#lingerMs = lingerMs
  }

  /** Passes the requests of a server to its handler. */
  follow (server: Server, handler: RequestListener): void {
    const all = this.#responses
    // One function for all: each request would pay for another one.
    function forgetClosed (this: ServerResponse): void {
      const responses = all.get(this.req.socket)
      if (responses?.[0] === this) responses.shift()
    }
    server.on('connection', (socket: Socket) => {
      this.#responses.set(socket, [])
      // Node calls it after an answer with `Connection: close`.
      socket.destroySoon = () => { this.#end(socket) }
      socket.once('close', () => { this.#forget(socket) })
      // Node reads on after each answer, to find out what follows.
      socket.on('resume', () => { if (this.#waiting.has(socket)) socket.pause() })
    })
    server.on('request', (request, response) => {
      const { socket } = request
      const responses = this.#responses.get(socket)
      // Behind the rest of a body that was refused, nothing is answered.
      if (responses === undefined || !socket.writable) return
      response.on('close', forgetClosed)
      responses.push(response)
      // Node gives the socket to one response at a time.
      if (response.socket === null) this.#wait(socket, responses, handler)
      else handler(request, response)
    })
  }

  get sockets (): Iterable<Socket> {
    return this.#responses.keys()
  }

  /** Responses that the system has not taken completely, in the order of their requests. */
  owedTo (socket: Socket): readonly ServerResponse[] {
    return this.#responses.get(socket)?.filter(({ writableFinished }) => !writableFinished) ?? []
  }

  /** Whether no request has come on the connection after the one that this response answers. */
  isLatest (response: ServerResponse): boolean {
    const responses = this.#responses.get(response.req.socket)
    return responses === undefined || responses.at(-1) === response
  }

  /** Whether the handler is being called for a request that has waited: it did not come with the present poll phase. */
  isLate (response: ServerResponse): boolean {
    return this.#late === response
  }

  /** Ends the connections that are owed nothing, half a request head included. */
  closeIdle (): void {
    for (const socket of this.sockets) {
      if (this.owedTo(socket).length === 0) socket.destroy()
    }
  }

  #end (socket: Socket): void {
    const last = this.#responses.get(socket)?.at(-1)
    if (last === undefined || !last.writableFinished || last.req.complete) {
      Socket.prototype.destroySoon.call(socket)
      return
    }
    socket.end()
    const timer = setTimeout(() => { socket.destroy() }, this.#lingerMs).unref()
    socket.once('close', () => { clearTimeout(timer) })
    last.req.unpipe().once('end', () => { socket.destroy() }).resume()
  }

  /** The latest response waits for those before it. No further request is read meanwhile. */
  #wait (socket: Socket, responses: readonly ServerResponse[], handler: RequestListener): void {
    const waiting = this.#waiting.get(socket) ?? 0
    this.#waiting.set(socket, waiting + 1)
    this.#waitingCount++
    this.#garbage.add(WAITING_BYTES)
    if (waiting === 0) {
      socket.pause()
      this.#continueAfter(responses.at(-2), socket, handler)
    }
    this.#readAhead++
    if (this.#readAhead === 1) setImmediate(() => { this.#readAhead = 0 })
    if (this.#readAhead === MAX_READ_AHEAD) this.#pauseUntilNextIteration()
    if (this.#waitingCount > this.#maxWaiting) this.#closeGreediest()
  }

  /** The other connections that have sent something are read in the next iteration, the oldest first. */
  #pauseUntilNextIteration (): void {
    const paused = [...this.sockets].filter((socket) => !socket.isPaused())
    for (const socket of paused) socket.pause()
    setImmediate(() => {
      for (const socket of paused) socket.resume()
    })
  }

  #continueAfter (response: ServerResponse | undefined, socket: Socket, handler: RequestListener): void {
    // Other connections come first: a chain of answers from memory would hold the event loop.
    response?.once('finish', () => { setImmediate(() => { this.#continue(socket, handler) }) })
  }

  #continue (socket: Socket, handler: RequestListener): void {
    // The one before it has closed, and is forgotten.
    const response = this.#responses.get(socket)?.[0]
    const waiting = this.#waiting.get(socket)
    // An answer with `Connection: close` was the last: Node drops all behind it.
    if (response === undefined || waiting === undefined || response.socket === null || !socket.writable) return
    this.#waitingCount--
    if (waiting === 1) {
      this.#waiting.delete(socket)
      // Node ends a connection at the end of its input: an answer that is ready now goes out before.
      setImmediate(() => { socket.resume() })
    } else {
      this.#waiting.set(socket, waiting - 1)
      this.#continueAfter(response, socket, handler)
    }
    this.#late = response
    handler(response.req, response)
    this.#late = undefined
  }

  #closeGreediest (): void {
    let greediest: Socket | undefined
    let most = 0
    for (const [socket, waiting] of this.#waiting) {
      if (waiting <= most) continue
      greediest = socket
      most = waiting
    }
    if (greediest === undefined) return
    this.#forget(greediest)
    greediest.destroy()
  }

  /** Its requests that are still being parsed are dropped too. */
  #forget (socket: Socket): void {
    this.#responses.delete(socket)
    this.#waitingCount -= this.#waiting.get(socket) ?? 0
    this.#waiting.delete(socket)
  }
}

/**
 * Node's HTTP server, whose `close()` ends the connections that are owed nothing and no others. With the inherited
 * `closeIdleConnections`, it would cut an answer that a slow client has not read completely. It would also wait for a client
 * that has sent nothing.
 */
export class GracefulServer extends Server {
  readonly #connections: Connections

  constructor (options: ServerOptions, connections: Connections, handler: RequestListener) {
    super(options)
    this.#connections = connections
    connections.follow(this, handler)
  }

  override closeIdleConnections (): void {
    this.#connections.closeIdle()
  }
}
