import type { ChangeFeed } from '../../core/events/change-feed.ts'
import type { SkillService } from '../../core/skill-source.ts'
import type { SendFrame } from '../../http/send/event-streams.ts'
import { MCP_NOTIFY_MS } from '../limits.ts'
import { mainFileUri } from '../skill-uri.ts'

const LIST_CHANGES = Buffer.concat([frameOf('resources/list_changed'), frameOf('prompts/list_changed')])

/**
 * Changes for the streams of `GET /mcp`, which clients of the 2025 revisions open. They are changes of the lists, and of each skill as
 * `resources/updated` of its main file, whichever of its files has changed. There are no sessions that could remember what
 * a client has subscribed to. Nothing is followed without a stream.
 */
export class Notifications {
  readonly #skills: Pick<SkillService, 'subscribe'>
  readonly #feed: Pick<ChangeFeed, 'subscribe'>
  readonly #streams = new Set<SendFrame>()
  #stops: ReadonlyArray<() => void> = []
  #timer: NodeJS.Timeout | undefined

  constructor (skills: Pick<SkillService, 'subscribe'>, feed: Pick<ChangeFeed, 'subscribe'>) {
    this.#skills = skills
    this.#feed = feed
  }

  /** Sends all later changes, until the returned function is called. */
  subscribe (send: SendFrame): () => void {
    if (this.#streams.size === 0) this.#follow()
    this.#streams.add(send)
    return () => {
      if (this.#streams.delete(send) && this.#streams.size === 0) this.#stop()
    }
  }

  #follow (): void {
    this.#stops = [
      // Changes come in bursts.
      this.#skills.subscribe(() => { this.#timer ??= setTimeout(() => { this.#sendListChanges() }, MCP_NOTIFY_MS).unref() }),
      this.#feed.subscribe((event) => {
        if (event.type === 'changed') this.#send(frameOf('resources/updated', { uri: mainFileUri(event.name) }))
      })
    ]
  }

  #stop (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const stop of this.#stops) stop()
  }

  #sendListChanges (): void {
    this.#timer = undefined
    this.#send(LIST_CHANGES)
  }

  #send (frame: Buffer): void {
    for (const send of this.#streams) send(frame)
  }
}

function frameOf (name: string, params?: object): Buffer {
  return Buffer.from(`data: ${JSON.stringify({ jsonrpc: '2.0', method: `notifications/${name}`, ...params && { params } })}\n\n`)
}
