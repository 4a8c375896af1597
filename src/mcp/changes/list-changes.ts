import type { SkillService } from '../../core/skill-source.ts'
import { MCP_NOTIFY_MS } from '../limits.ts'

/**
 * Tells of changes to the lists of the catalog. Changes come in bursts, so that those of MCP_NOTIFY_MS are told once. Returns a
 * function that stops it.
 */
export function onListChanges (skills: Pick<SkillService, 'subscribe'>, tell: () => void): () => void {
  let timer: NodeJS.Timeout | undefined

  function tellOnce (): void {
    timer = undefined
    tell()
  }

  const unsubscribe = skills.subscribe(() => { timer ??= setTimeout(tellOnce, MCP_NOTIFY_MS).unref() })

  return () => {
    clearTimeout(timer)
    unsubscribe()
  }
}
