import type { DialectName } from './dialects/dialect.ts'
import { DIALECTS_BY_NAME } from './dialects/index.ts'
import type { ToolRegistry } from './registry.ts'
import type { Toolset } from './tool.ts'

/**
 * Definitions ready to stand as `tools` in a request to a provider. `function.description` of the OpenAI form is
 * the source documents' fixed text; the other forms carry the description that follows the catalog.
 */
export function toolDefinitions (registry: ToolRegistry, format: DialectName, toolset: Toolset | 'all'): readonly object[] {
  return DIALECTS_BY_NAME[format].writeDefinitions(registry.list(toolset === 'all' ? undefined : toolset))
}
