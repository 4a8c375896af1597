import {
  type CallToolResult, type ListToolsResult, ProtocolError, ProtocolErrorCode
} from '@modelcontextprotocol/server'
import type { View } from '../../core/view.ts'
import type { ToolRegistry } from '../../tools/registry.ts'
import { runTool, type ToolRun } from '../../tools/calls/run-tool.ts'
import { mcp } from '../../tools/dialects/wire/mcp.ts'
import { defineTool } from '../../tools/tool-definitions.ts'

/** The tools that any agent can use. */
export const MCP_TOOLSET = 'explore'

export function listTools (registry: ToolRegistry, skills: View): ListToolsResult {
  return { tools: mcp.writeDefinitions(registry.list(MCP_TOOLSET).map((tool) => defineTool(tool, skills))) }
}

/** Runs one tool. No `structuredContent`: most hosts would give the model that JSON in place of the text. */
export async function callTool (name: string, args: unknown, run: ToolRun): Promise<CallToolResult> {
  const { registry } = run
  const tool = registry.find(name, MCP_TOOLSET)
  if (tool === undefined) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, registry.unknownTool(name, MCP_TOOLSET))
  }
  const outcome = await runTool(tool, args, run)
  const content = [{ type: 'text' as const, text: outcome.text }]
  return outcome.isError ? { content, isError: true } : { content }
}
