import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { MAX_EVENT_STREAM_BYTES } from '../../http/limits.ts'
import { HttpProblem } from '../../http/problem.ts'
import { cutUnread, pushBounded } from '../../http/send/unread.ts'
import { MAX_LISTEN_CHARACTERS, MAX_MCP_STREAMS } from '../limits.ts'

interface ListenStreamsOptions {
  /** Receives what waited for a client that was dropped, in bytes. */
  readonly onDrop: (bytes: number) => void
  readonly maxStreams?: number
  readonly maxCharacters?: number
  readonly maxStreamBytes?: number
}

type Read = () => Promise<{ readonly done: boolean, readonly value?: Uint8Array | undefined }>

/**
 * Bounds the streams of `subscriptions/listen`, as those of `GET /events` are. The SDK counts them for each view by itself, and keeps
 * whatever a client does not take.
 */
export class ListenStreams {
  readonly #options: Required<ListenStreamsOptions>
  readonly #open = new Set<ServerResponse>()
  /** Ends the streams that clients follow, by their result. */
  readonly #ends = new Set<() => void>()
  #characters = 0
  #isClosing = false

  constructor ({ onDrop, maxStreams = MAX_MCP_STREAMS, maxCharacters = MAX_LISTEN_CHARACTERS, maxStreamBytes = MAX_EVENT_STREAM_BYTES }: ListenStreamsOptions) {
    this.#options = { onDrop, maxStreams, maxCharacters, maxStreamBytes }
  }

  /**
   * Counts a stream. Returns a function for the end of its answer.
   * @param characters of the request: its id and its URIs stay as long as the stream
   * @throws {HttpProblem} `too_many_streams`, `not_ready` while the service is stopping
   */
  admit (response: ServerResponse, characters: number): () => void {
    const { maxStreams, maxCharacters } = this.#options
    if (this.#isClosing) throw new HttpProblem('not_ready', 'The service is stopping')
    if (this.#open.size >= maxStreams || this.#characters + characters > maxCharacters) throw new HttpProblem('too_many_streams')
    this.#open.add(response)
    this.#characters += characters
    return () => {
      this.#open.delete(response)
      this.#characters -= characters
    }
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

  async #readAll (read: Read, stream: Readable): Promise<void> {
    while (await this.#readOne(read, stream));
  }

  /** Not within the loop: a stream that waits for its next notification would keep the one before. */
  async #readOne (read: Read, stream: Readable): Promise<boolean> {
    const { value } = await read()
    if (value === undefined || stream.destroyed) return false
    const { maxStreamBytes, onDrop } = this.#options
    pushBounded(stream, value, maxStreamBytes, onDrop)
    return true
  }
}

/** What ends a stream as its server wants it: the SDK can end all of its streams only. */
function resultOf (id: unknown): Buffer {
  const result = { resultType: 'complete', _meta: { 'io.modelcontextprotocol/subscriptionId': id } }
  return Buffer.from(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
}
