import type { ChangeFeed } from '../../core/events/change-feed.ts'
import { Signal } from '../../core/ground/signal.ts'
import type { SkillService } from '../../core/skill-source.ts'
import type { SendFrame } from '../../http/send/event-streams.ts'
import { MCP_NOTIFY_MS } from '../limits.ts'
import { mainFileUri } from '../skill-uri.ts'

/** Says that every list may be another. */
export const LIST_CHANGES = Buffer.concat([frameOf('resources/list_changed'), frameOf('prompts/list_changed')])

/**
 * Changes for the streams of `GET /mcp`, which clients of the 2025 revisions open. They are changes of the lists, and of each skill as
 * `resources/updated` of its main file, whichever of its files has changed. There are no sessions that could remember what
 * a client has subscribed to. Nothing is followed without a stream.
 */
export class Notifications {
  readonly #skills: Pick<SkillService, 'subscribe'>
  readonly #feed: Pick<ChangeFeed, 'subscribe'>
  readonly #frames = new Signal<Buffer>(() => this.#follow())

  constructor (skills: Pick<SkillService, 'subscribe'>, feed: Pick<ChangeFeed, 'subscribe'>) {
    this.#skills = skills
    this.#feed = feed
  }

  /** Sends all later changes, until the returned function is called. */
  subscribe (send: SendFrame): () => void {
    return this.#frames.subscribe(send)
  }

  #follow (): () => void {
    let timer: NodeJS.Timeout | undefined
    const sendListChanges = (): void => {
      timer = undefined
      this.#frames.emit(LIST_CHANGES)
    }
    // Changes come in bursts.
    const stopLists = this.#skills.subscribe(() => { timer ??= setTimeout(sendListChanges, MCP_NOTIFY_MS).unref() })
    const stopFeed = this.#feed.subscribe((event) => {
      if (event.type === 'changed') this.#frames.emit(frameOf('resources/updated', { uri: mainFileUri(event.name) }))
    })
    return () => {
      clearTimeout(timer)
      stopLists()
      stopFeed()
    }
  }
}

function frameOf (name: string, params?: object): Buffer {
  return Buffer.from(`data: ${JSON.stringify({ jsonrpc: '2.0', method: `notifications/${name}`, ...params && { params } })}\n\n`)
}
