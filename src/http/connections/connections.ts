import { Server, type ServerOptions, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The open connections of one server, and the answers that each is owed. */
export class Connections {
  /** Responses that are not completely sent, in the order of their requests. The front may hold some that are. */
  readonly #responses = new Map<Socket, ServerResponse[]>()

  /** Call before anything else listens to the server: a handler may answer at once. */
  follow (server: Server): void {
    server.on('connection', (socket: Socket) => {
      this.#responses.set(socket, [])
      socket.once('close', () => this.#responses.delete(socket))
    })
    server.on('request', ({ socket }, response) => {
      const responses = this.#responses.get(socket)
      if (responses === undefined) return
      while (responses[0]?.writableFinished === true) responses.shift()
      responses.push(response)
    })
  }

  get sockets (): Iterable<Socket> {
    return this.#responses.keys()
  }

  get size (): number {
    return this.#responses.size
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

  /** Ends the connections that are owed nothing, half a request head included. */
  closeIdle (): void {
    for (const socket of this.sockets) {
      if (socket.writableLength === 0 && this.owedTo(socket).length === 0) socket.destroy()
    }
  }
}

/**
 * Node's HTTP server, whose `close()` ends the connections that are owed nothing and no others. With the inherited
 * `closeIdleConnections`, it would cut an answer that a slow client has not read completely, and wait for a client that has
 * sent nothing.
 */
export class GracefulServer extends Server {
  readonly #connections: Connections

  constructor (options: ServerOptions, connections: Connections) {
    super(options)
    this.#connections = connections
    connections.follow(this)
  }

  override closeIdleConnections (): void {
    this.#connections.closeIdle()
  }
}
