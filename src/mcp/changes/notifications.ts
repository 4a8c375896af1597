import type { ChangeFeed } from '../../core/events/change-feed.ts'
import { Signal } from '../../core/shared/signal.ts'
import type { SkillService } from '../../core/skill-source.ts'
import type { SendFrame } from '../../http/send/event-streams.ts'
import { mainFileUri } from '../skill-uri.ts'
import { onListChanges } from './list-changes.ts'

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
    const stopLists = onListChanges(this.#skills, () => { this.#frames.emit(LIST_CHANGES) })
    const stopFeed = this.#feed.subscribe((event) => {
      if (event.type === 'changed') this.#frames.emit(frameOf('resources/updated', { uri: mainFileUri(event.name) }))
    })
    return () => {
      stopLists()
      stopFeed()
    }
  }
}

function frameOf (name: string, params?: object): Buffer {
  return Buffer.from(`data: ${JSON.stringify({ jsonrpc: '2.0', method: `notifications/${name}`, ...params && { params } })}\n\n`)
}
