import type { View } from '../core/view.ts'
import type { ToolDefinition } from './dialects/dialect.ts'
import { type DefinitionFormat, writeDefinitions } from './dialects/index.ts'
import type { ToolRegistry } from './registry.ts'
import type { Tool, Toolset } from './tool.ts'

export interface ToolDefinitionOptions {
  readonly format: DefinitionFormat
  readonly toolset: Toolset | 'all'
  /** View whose skills some descriptions list. */
  readonly skills: View
}

/**
 * Returns tool definitions as elements of `tools` in a request to a provider. `function.description` of the OpenAI form
 * is the fixed text of the source documents; the other forms have the description that lists the present skills.
 */
export function toolDefinitions (
  registry: ToolRegistry, { format, toolset, skills }: ToolDefinitionOptions
): readonly object[] {
  return writeDefinitions(format, registry.list(toolset === 'all' ? undefined : toolset)
    .map((tool) => defineTool(tool, skills)))
}

export function defineTool (tool: Tool, skills: View): ToolDefinition {
  const { name, description, parameters } = tool
  return { name, description, currentDescription: tool.currentDescription?.(skills) ?? description, parameters }
}
