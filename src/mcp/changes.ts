import type { ServerNotifier } from '@modelcontextprotocol/server'
import { MCP_NOTIFY_MS } from './limits.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import { defineTool } from '../tools/tool-definitions.ts'

/**
 * Tells the open streams what changed in the catalog: the lists, and the tools when a description follows the catalog.
 * Changes come in bursts: those of a moment are told together.
 * @returns the way to stop
 */
export function announceChanges (skills: SkillManager, registry: ToolRegistry, notify: ServerNotifier): () => void {
  const describe = () => registry.list('reader').map((tool) => defineTool(tool, skills).currentDescription).join('\n')
  let described = describe()
  let timer: NodeJS.Timeout | undefined

  function announce (): void {
    timer = undefined
    notify.resourcesChanged()
    notify.promptsChanged()
    const now = describe()
    if (now !== described) notify.toolsChanged()
    described = now
  }

  const unsubscribe = skills.subscribe(() => { timer ??= setTimeout(announce, MCP_NOTIFY_MS).unref() })

  return () => {
    clearTimeout(timer)
    unsubscribe()
  }
}
