import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import type { ServerEventBus } from '@modelcontextprotocol/server'
import { own } from '../core/shared/json.ts'
import type { ChangeFeed } from '../core/events/change-feed.ts'
import { MCP_NOTIFY_MS } from './limits.ts'
import { parseSkillUri } from './skill-uri.ts'

interface Listener {
  /** Skills were added, changed or removed, so every list may differ. Changes within MCP_NOTIFY_MS are one call. */
  onLists (): void
  /** Files of this skill changed; also when the skill was added or removed. */
  onSkill (name: string): void
}

/** Follows the catalog for one client. Returns a function that ends this. */
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

/** The events of one `subscriptions/listen` stream. The SDK drops those that the stream did not ask for. */
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

/** Subscribed URIs by the name of their skill. Those that cannot name a file are left out. */
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
 * The bytes of a stream, read as they are made: the SDK queues without limit what its client does not take.
 * @param onDrop called when the client is dropped because more than `maxBytes` wait for it
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
