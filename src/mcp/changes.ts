import type { ChangeFeed } from '../core/events/change-feed.ts'
import type { View } from '../core/view.ts'
import { MCP_NOTIFY_MS } from './limits.ts'

/** Where changes come from. */
export interface Followed {
  readonly skills: Pick<View, 'subscribe'>
  readonly feed: Pick<ChangeFeed, 'subscribe'>
}

interface Listener {
  /** Skills were added, changed or removed, so every list may differ. Changes within MCP_NOTIFY_MS are one call. */
  onLists (): void
  /** Files of this skill changed; also when the skill was added or removed. */
  onSkill (name: string): void
}

/** Follows the catalog for one client. Returns a function that stops it. */
export function followChanges ({ skills, feed }: Followed, { onLists, onSkill }: Listener): () => void {
  let timer: NodeJS.Timeout | undefined
  const stopLists = skills.subscribe(() => {
    timer ??= setTimeout(() => {
      timer = undefined
      onLists()
    }, MCP_NOTIFY_MS).unref()
  })
  const stopFeed = feed.subscribe((event) => { if ('name' in event) onSkill(event.name) })
  return () => {
    clearTimeout(timer)
    stopLists()
    stopFeed()
  }
}
