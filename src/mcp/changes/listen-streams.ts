import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { MAX_EVENT_STREAM_BYTES } from '../../http/limits.ts'
import { HttpProblem } from '../../http/problem.ts'
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
  #open = 0

  constructor ({ onDrop, maxStreams = MAX_MCP_STREAMS, maxStreamBytes = MAX_EVENT_STREAM_BYTES }: ListenStreamsOptions) {
    this.#options = { onDrop, maxStreams, maxStreamBytes }
  }

  /**
   * Counts a stream until its answer has ended.
   * @throws {HttpProblem} `too_many_streams`
   */
  admit (response: ServerResponse): void {
    if (this.#open >= this.#options.maxStreams) throw new HttpProblem('too_many_streams')
    this.#open++
    response.once('close', () => { this.#open-- })
  }

  /** The same bytes, read at once, so that what waits for the client is known. */
  bound (body: ReadableStream<Uint8Array>): Readable {
    const reader = body.getReader()
    const stream = new Readable({
      read () {},
      destroy (error, done) { reader.cancel().then(() => { done(error) }, done) }
    })
    this.#readAll(() => reader.read(), stream).catch((error: Error) => { stream.destroy(error) })
    return stream
  }

  async #readAll (read: () => Promise<{ readonly done: boolean, readonly value?: Uint8Array | undefined }>, stream: Readable): Promise<void> {
    const { maxStreamBytes, onDrop } = this.#options
    for (let { value } = await read(); value !== undefined && !stream.destroyed; { value } = await read()) {
      if (stream.readableLength + value.length > maxStreamBytes) {
        onDrop(stream.readableLength)
        stream.destroy()
        return
      }
      stream.push(value)
    }
    stream.push(null)
  }
}
