import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { MAX_EVENT_STREAM_BYTES } from '../../http/limits.ts'
import { HttpProblem } from '../../http/problem.ts'
import { cutUnread, pushBounded } from '../../http/send/unread.ts'
import { MAX_MCP_STREAMS } from '../limits.ts'

export interface ListenStreamsOptions {
  /** Receives what waited for a client that was dropped, in bytes. */
  readonly onDrop: (bytes: number) => void
  readonly maxStreams?: number
  readonly maxStreamBytes?: number
}

/**
 * Bounds the streams of `subscriptions/listen`, as those of `GET /events` are. The SDK counts them for each view by itself, and keeps
 * whatever a client does not take.
 */
export class ListenStreams {
  readonly #options: Required<ListenStreamsOptions>
  readonly #open = new Set<ServerResponse>()
  /** Ends the streams that clients follow, by their result. */
  readonly #ends = new Set<() => void>()
  #isClosing = false

  constructor ({ onDrop, maxStreams = MAX_MCP_STREAMS, maxStreamBytes = MAX_EVENT_STREAM_BYTES }: ListenStreamsOptions) {
    this.#options = { onDrop, maxStreams, maxStreamBytes }
  }

  /**
   * Counts a stream until its answer has ended.
   * @throws {HttpProblem} `too_many_streams`, `not_ready` while the service is stopping
   */
  admit (response: ServerResponse): void {
    if (this.#isClosing) throw new HttpProblem('not_ready', 'The service is stopping')
    if (this.#open.size >= this.#options.maxStreams) throw new HttpProblem('too_many_streams')
    this.#open.add(response)
    response.once('close', () => { this.#open.delete(response) })
  }

  /** Admits no more. */
  refuse (): void {
    this.#isClosing = true
  }

  /** Cuts the streams that have ended, and whose clients do not read. */
  async cut (): Promise<void> {
    await cutUnread([...this.#open])
  }

  /** For each stream that clients follow, a function that ends it with its result. */
  get ends (): readonly (() => void)[] {
    return [...this.#ends]
  }

  /**
   * The same bytes, read at once, so that what waits for the client is known.
   * @param id of the request
   */
  bound (body: ReadableStream<Uint8Array>, id: unknown): Readable {
    const reader = body.getReader()
    const stream = new Readable({
      read () {},
      destroy (error, done) { reader.cancel().then(() => { done(error) }, done) }
    })
    let result: Buffer | undefined
    const end = (): void => {
      result ??= resultOf(id)
      reader.cancel().catch(() => {})
    }
    this.#ends.add(end)
    stream.once('close', () => { this.#ends.delete(end) })
    this.#readAll(() => reader.read(), stream).then(() => {
      if (stream.destroyed) return
      if (result !== undefined) stream.push(result)
      stream.push(null)
    }).catch((error: Error) => { stream.destroy(error) })
    return stream
  }

  async #readAll (read: () => Promise<{ readonly done: boolean, readonly value?: Uint8Array | undefined }>, stream: Readable): Promise<void> {
    const { maxStreamBytes, onDrop } = this.#options
    for (let { value } = await read(); value !== undefined && !stream.destroyed; { value } = await read()) {
      pushBounded(stream, value, maxStreamBytes, onDrop)
    }
  }
}

/** What ends a stream as its server wants it: the SDK can end all of its streams only. */
function resultOf (id: unknown): Buffer {
  const result = { resultType: 'complete', _meta: { 'io.modelcontextprotocol/subscriptionId': id } }
  return Buffer.from(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
}
