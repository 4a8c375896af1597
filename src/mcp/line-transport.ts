import type { Readable, Writable } from 'node:stream'
import { type JSONRPCMessage, ProtocolErrorCode, type Transport } from '@modelcontextprotocol/server'
import { MAX_STDIO_MESSAGE_BYTES } from './limits.ts'
import { checkMessage, type ErrorAnswer, errorAnswer, invalidRequest, parseMessage } from './message.ts'

const LINE_FEED = 0x0a

/**
 * MCP over two streams, one message per line. The SDK's transport drops malformed lines, so that clients wait for ever,
 * and ends the session at a line that is too long; this one answers both with an error.
 */
export class LineTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #input: Readable
  readonly #output: Writable
  /** Chunks of the current line; undefined while the rest of a line that is too long is skipped. */
  #line: Buffer[] | undefined = []
  #bytes = 0
  #isClosed = false

  constructor (input: Readable, output: Writable) {
    this.#input = input
    this.#output = output
  }

  async start (): Promise<void> {
    this.#input.on('data', this.#onData).on('error', this.#onError).on('close', this.#onEnd).on('end', this.#onEnd)
    this.#output.on('error', this.#onOutputError)
    if (this.#input.readableEnded || this.#input.destroyed) setImmediate(this.#onEnd)
  }

  async send (message: JSONRPCMessage): Promise<void> {
    if (this.#isClosed) return
    const line = JSON.stringify(message)
    const bytes = Buffer.byteLength(line)
    if (bytes <= MAX_STDIO_MESSAGE_BYTES || !('result' in message)) return this.#write(line)
    const sentence = `The result has ${bytes} bytes, and a message has at most ${MAX_STDIO_MESSAGE_BYTES}`
    this.#write(JSON.stringify(errorAnswer(message.id, ProtocolErrorCode.InternalError, sentence)))
  }

  async close (): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#input.off('data', this.#onData).off('error', this.#onError).off('close', this.#onEnd).off('end', this.#onEnd)
    this.#input.pause()
    this.onclose?.()
  }

  readonly #onError = (error: Error): void => { this.onerror?.(error) }
  readonly #onEnd = (): void => { void this.close() }
  // This listener stays after `close`: the client may disconnect while an answer is being written.
  readonly #onOutputError = (error: Error): void => {
    if (!this.#isClosed) this.onerror?.(error)
    void this.close()
  }

  readonly #onData = (chunk: Buffer): void => {
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      this.#append(chunk.subarray(start, end))
      const line = this.#line
      this.#line = []
      this.#bytes = 0
      if (line !== undefined) this.#receive(Buffer.concat(line).toString())
      start = end + 1
    }
    this.#append(chunk.subarray(start))
  }

  #append (part: Buffer): void {
    this.#bytes += part.length
    this.#line?.push(part)
    if (this.#line === undefined || this.#bytes <= MAX_STDIO_MESSAGE_BYTES) return
    this.#line = undefined
    this.#refuse(invalidRequest(null, `a message has at most ${MAX_STDIO_MESSAGE_BYTES} bytes`))
  }

  #receive (line: string): void {
    // Removes a byte order mark, and the carriage return of Windows line ends.
    const text = line.replace(/^\uFEFF/, '').trim()
    if (text === '' || this.#isClosed) return
    const parsed = parseMessage(text)
    const checked = 'value' in parsed ? checkMessage(parsed.value) : parsed
    if ('message' in checked) this.onmessage?.(checked.message as JSONRPCMessage)
    else this.#refuse(checked)
  }

  #refuse (answer: ErrorAnswer): void {
    this.onerror?.(new Error(answer.error.message))
    this.#write(JSON.stringify(answer))
  }

  #write (line: string): void {
    this.#output.write(`${line}\n`)
  }
}
