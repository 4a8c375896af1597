import type { ChangeFeed } from '../core/events/change-feed.ts'
import { MCP_NOTIFY_MS } from './limits.ts'

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
