import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'

export interface ServerEvent {
  readonly id: string
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

export interface EventStreamOptions {
  readonly target?: string
  /** Lines, `Name: value`. */
  readonly headers?: readonly string[]
}

/** Opens an event stream on its own connection, and returns after the head of the answer. */
export async function openEvents (url: string,
  { target = '/events', headers = [] }: EventStreamOptions = {}): Promise<EventStream> {
  const pairs = headers.map((line) => line.split(/: (.*)/).slice(0, 2) as [string, string])
  const request = get(url + target, { agent: new Agent({ keepAlive: true }), headers: Object.fromEntries(pairs) })
  const [response] = await once(request, 'response') as [IncomingMessage]
  return new EventStream(response)
}

/** An event stream as it arrives, parsed by the HTML standard (§9.2.6). */
export class EventStream {
  readonly response: IncomingMessage
  readonly events: ServerEvent[] = []
  readonly comments: string[] = []
  retry: string | undefined
  /** The `Last-Event-ID` that a browser would send on reconnecting. */
  lastEventId = ''
  ended = false
  #text = ''
  #wake = () => {}

  constructor (response: IncomingMessage) {
    this.response = response
    response.setEncoding('utf8').on('data', (text: string) => {
      this.#text += text
      const blocks = this.#text.split('\n\n')
      this.#text = blocks.pop() ?? ''
      for (const block of blocks) this.#take(block)
      this.#wake()
    }).on('error', () => {}).on('end', () => { this.#wake() }).on('close', () => {
      this.ended = true
      this.#wake()
    })
  }

  /** Status line and header lines. */
  get head (): string {
    const { statusCode, statusMessage, rawHeaders } = this.response
    const lines = rawHeaders.flatMap((name, index) => index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : [])
    return [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines].join('\r\n')
  }

  /** Whether the answer was complete, rather than cut with its connection. */
  get complete (): boolean { return this.response.complete }

  get types (): readonly string[] {
    return this.events.map(({ type, data }) => `${type} ${String(data['name'] ?? '')}`.trim())
  }

  /** Waits until a condition is true for what has arrived. */
  async until (what: string, holds: () => boolean): Promise<void> {
    while (!holds()) {
      if (this.ended) throw new Error(`the stream ended without ${what}: ${this.types.join(', ')}`)
      await new Promise<void>((resolve) => { this.#wake = resolve })
    }
  }

  /** Resolves with the event at this index, now or when it arrives. */
  async event (index: number): Promise<ServerEvent> {
    await this.until(`event ${index}`, () => this.events.length > index)
    return this.events[index] as ServerEvent
  }

  destroy (): void {
    this.response.destroy()
  }

  #take (block: string): void {
    let type = 'message'
    const data: string[] = []
    for (const line of block.split('\n')) {
      const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? []
      if (line.startsWith(':')) this.comments.push(value)
      else if (field === 'retry') this.retry = value
      else if (field === 'id') this.lastEventId = value
      else if (field === 'event') type = value
      else if (field === 'data') data.push(value)
    }
    if (data.length > 0) {
      this.events.push({ id: this.lastEventId, type, data: JSON.parse(data.join('\n')) as ServerEvent['data'] })
    }
  }
}
