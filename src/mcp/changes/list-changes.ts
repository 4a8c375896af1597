import type { ServerNotifier } from '@modelcontextprotocol/server'
import type { SkillService } from '../../core/skill-source.ts'
import type { ToolRegistry } from '../../tools/registry.ts'
import { defineTool } from '../../tools/tool-definitions.ts'
import { MCP_NOTIFY_MS } from '../limits.ts'
import { MCP_TOOLSET } from '../methods/tools.ts'

/**
 * Notifies open streams of changes to the catalog: of lists, and of tools where a description follows the catalog.
 * Changes come in bursts, so that those of MCP_NOTIFY_MS make one notification. Returns a function that stops it.
 */
export function notifyOfChanges (skills: SkillService, registry: ToolRegistry, notify: ServerNotifier): () => void {
  const describe = () => registry.list(MCP_TOOLSET).map((tool) => defineTool(tool, skills).currentDescription).join('\n')
  let lastDescriptions = describe()
  let timer: NodeJS.Timeout | undefined

  function notifyStreams (): void {
    timer = undefined
    notify.resourcesChanged()
    notify.promptsChanged()
    const descriptions = describe()
    if (descriptions !== lastDescriptions) notify.toolsChanged()
    lastDescriptions = descriptions
  }

  const unsubscribe = skills.subscribe(() => { timer ??= setTimeout(notifyStreams, MCP_NOTIFY_MS).unref() })

  return () => {
    clearTimeout(timer)
    unsubscribe()
  }
}
