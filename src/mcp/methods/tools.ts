import { type CallToolResult, type ListToolsResult, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import type { TObject } from '@sinclair/typebox'
import type { SkillSource } from '../../core/skill-source.ts'
import { createToolRegistry, type ToolRegistry } from '../../tools/registry.ts'
import { runTool, type ToolRun } from '../../tools/run-tool.ts'
import { defineTool } from '../../tools/tool-definitions.ts'

/** The tools that any agent can use. */
const TOOLSET = 'reader'

const ANNOTATIONS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

export function listTools (registry: ToolRegistry, skills: SkillSource): ListToolsResult {
  return {
    tools: registry.list(TOOLSET).map((tool) => {
      const { name, currentDescription, parameters } = defineTool(tool, skills)
      return {
        name,
        description: currentDescription,
        inputSchema: { ...parameters, required: [...parameters.required] },
        outputSchema: plainSchema(tool.resultSchema),
        annotations: ANNOTATIONS
      }
    })
  }
}

/** Runs one tool: the same text as through `POST /agent/tool-call`, and the result object where the call succeeded. */
export async function callTool (name: string, args: unknown, run: ToolRun): Promise<CallToolResult> {
  const { registry } = run
  const tool = registry.find(name)
  if (tool?.toolset !== TOOLSET) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, createToolRegistry(registry.list(TOOLSET)).unknownTool(name))
  }
  const outcome = await runTool(tool, args, run)
  const content = [{ type: 'text' as const, text: outcome.text }]
  return outcome.isError ? { content, isError: true } : { content, structuredContent: { ...outcome.result } }
}

/** Drops `$id`, the name in the OpenAPI document: a client that compiles the schema would register it. */
function plainSchema ({ properties, required = [] }: TObject): { type: 'object', properties: TObject['properties'], required: string[] } {
  return { type: 'object', properties, required: [...required] }
}
