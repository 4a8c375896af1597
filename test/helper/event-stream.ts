import type { RawConnection } from './raw-http.ts'
import { openRaw, request } from './raw-http.ts'

export interface ServerEvent {
  readonly id: string
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

export interface EventStreamOptions {
  readonly target?: string
  readonly headers?: readonly string[]
}

/** Asks for events over a bare socket, and returns when the head of the answer is there. */
export async function openEvents (url: string, { target = '/events', headers = [] }: EventStreamOptions = {}): Promise<EventStream> {
  const connection = await openRaw(url)
  const stream = new EventStream(connection)
  connection.send(request('GET', target, { headers }))
  await stream.until('the head', () => stream.head !== undefined)
  return stream
}

/** An answer as it arrives: chunks taken apart, then read as the HTML standard says (§9.2.6). */
export class EventStream {
  readonly connection: RawConnection
  readonly events: ServerEvent[] = []
  readonly comments: string[] = []
  /** Status line and header lines. */
  head: string | undefined
  retry: string | undefined
  /** What a browser would send when it connects again. */
  lastEventId = ''
  /** Whether the answer ended as it should, and not with its connection alone. */
  complete = false
  #rest = Buffer.alloc(0)
  #text = ''
  #wake = () => {}

  constructor (connection: RawConnection) {
    this.connection = connection
    connection.socket.removeAllListeners('data')
    connection.socket.on('data', (bytes: Buffer) => {
      this.#rest = Buffer.concat([this.#rest, bytes])
      this.#takeHead()
      this.#takeChunks()
      this.#wake()
    })
    connection.socket.on('close', () => { this.#wake() })
  }

  get types (): readonly string[] {
    return this.events.map(({ type, data }) => `${type} ${String(data['name'] ?? '')}`.trim())
  }

  /** Waits until something holds of what has arrived. */
  async until (what: string, holds: () => boolean, timeoutMs = 60_000): Promise<void> {
    const deadline = performance.now() + timeoutMs
    while (!holds()) {
      const left = deadline - performance.now()
      if (this.connection.ended || left <= 0) throw new Error(`the stream ${left <= 0 ? 'went on' : 'ended'} without ${what}: ${this.types.join(', ')}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  /** The event at this place, now or when it comes. */
  async event (index: number): Promise<ServerEvent> {
    await this.until(`event ${index}`, () => this.events.length > index)
    return this.events[index] as ServerEvent
  }

  destroy (): void {
    this.connection.destroy()
  }

  #takeHead (): void {
    const end = this.#rest.indexOf('\r\n\r\n')
    if (this.head !== undefined || end === -1) return
    this.head = this.#rest.toString('latin1', 0, end)
    this.#rest = this.#rest.subarray(end + 4)
  }

  #takeChunks (): void {
    for (;;) {
      const lineEnd = this.#rest.indexOf('\r\n')
      if (this.head === undefined || lineEnd === -1) return
      const size = Number.parseInt(this.#rest.toString('latin1', 0, lineEnd), 16)
      const end = lineEnd + 2 + size + 2
      if (this.#rest.length < end) return
      this.#text += this.#rest.toString('utf8', lineEnd + 2, end - 2)
      this.#rest = this.#rest.subarray(end)
      if (size === 0) this.complete = true
      this.#takeBlocks()
    }
  }

  #takeBlocks (): void {
    for (let end = this.#text.indexOf('\n\n'); end !== -1; end = this.#text.indexOf('\n\n')) {
      const lines = this.#text.slice(0, end).split('\n')
      this.#text = this.#text.slice(end + 2)
      let type = 'message'
      const data: string[] = []
      for (const line of lines) {
        const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? []
        if (line.startsWith(':')) this.comments.push(value)
        else if (field === 'retry') this.retry = value
        else if (field === 'id') this.lastEventId = value
        else if (field === 'event') type = value
        else if (field === 'data') data.push(value)
      }
      if (data.length > 0) this.events.push({ id: this.lastEventId, type, data: JSON.parse(data.join('\n')) as ServerEvent['data'] })
    }
  }
}
