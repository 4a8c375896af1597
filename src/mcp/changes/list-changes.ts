import type { ServerNotifier } from '@modelcontextprotocol/server'
import type { SkillService } from '../../core/skill-source.ts'
import { MCP_NOTIFY_MS } from '../limits.ts'

/**
 * Notifies open streams of changes to the lists of the catalog. Changes come in bursts, so that those of MCP_NOTIFY_MS make one
 * notification. Returns a function that stops it.
 */
export function notifyOfChanges (skills: Pick<SkillService, 'subscribe'>, notify: ServerNotifier): () => void {
  let timer: NodeJS.Timeout | undefined

  function notifyStreams (): void {
    timer = undefined
    notify.resourcesChanged()
    notify.promptsChanged()
  }

  const unsubscribe = skills.subscribe(() => { timer ??= setTimeout(notifyStreams, MCP_NOTIFY_MS).unref() })

  return () => {
    clearTimeout(timer)
    unsubscribe()
  }
}
