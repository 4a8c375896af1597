import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import type { ServerEventBus } from '@modelcontextprotocol/server'
import { own } from '../core/shared/json.ts'
import type { ChangeFeed } from '../core/events/change-feed.ts'
import { MCP_NOTIFY_MS } from './limits.ts'
import { parseSkillUri } from './skill-uri.ts'

interface Listener {
  /** Called when skills were added, changed or removed, once for all changes within MCP_NOTIFY_MS. */
  onLists (): void
  /** Called when files of this skill changed, or it was added or removed. */
  onSkill (name: string): void
}

/** Subscribes to changes of the catalog for one client. Returns a function that unsubscribes. */
export function followChanges (feed: Pick<ChangeFeed, 'onChange'>, { onLists, onSkill }: Listener): () => void {
  let timer: NodeJS.Timeout | undefined
  const stop = feed.onChange(({ name }) => {
    onSkill(name)
    timer ??= setTimeout(() => {
      timer = undefined
      onLists()
    }, MCP_NOTIFY_MS).unref()
  })
  return () => {
    clearTimeout(timer)
    stop()
  }
}

/** Makes the event bus of one `subscriptions/listen` stream. The SDK drops events that its client did not ask for. */
export function busFor (message: unknown, feed: Pick<ChangeFeed, 'onChange'>): ServerEventBus {
  const uris = urisBySkill(message)
  return {
    publish () {},
    subscribe: (listener) => followChanges(feed, {
      onLists () {
        listener({ kind: 'resources_list_changed' })
        listener({ kind: 'prompts_list_changed' })
      },
      onSkill (name) { for (const uri of uris.get(name) ?? []) listener({ kind: 'resource_updated', uri }) }
    })
  }
}

/** Groups the subscribed URIs by skill name. URIs that cannot name a file are ignored. */
function urisBySkill (message: unknown): ReadonlyMap<string, readonly string[]> {
  const uris = own(own(own(message, 'params'), 'notifications'), 'resourceSubscriptions')
  const bySkill = new Map<string, string[]>()
  for (const uri of Array.isArray(uris) ? new Set<unknown>(uris) : []) {
    if (typeof uri !== 'string') continue
    const { name = '', path = '' } = parseSkillUri(uri) ?? {}
    if (path !== '') bySkill.set(name, [...bySkill.get(name) ?? [], uri])
  }
  return bySkill
}

/**
 * Copies a stream into a bounded buffer, since the SDK buffers without limit for slow clients.
 * @param onDrop called when the client is disconnected because more than `maxBytes` are buffered
 */
export function boundedStream (body: ReadableStream<Uint8Array>, maxBytes: number, onDrop: () => void): Readable {
  const reader = body.getReader()
  const stream = new Readable({
    read () {},
    destroy (error, done) { reader.cancel().then(() => { done(error) }, done) }
  })

  async function readAll (): Promise<void> {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      if (stream.destroyed) return
      stream.push(chunk.value)
      if (stream.readableLength <= maxBytes) continue
      onDrop()
      stream.destroy()
    }
    if (!stream.destroyed) stream.push(null)
  }

  readAll().catch((error: Error) => { stream.destroy(error) })
  return stream
}
