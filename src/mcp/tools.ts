import { type CallToolResult, type ListToolsResult, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import type { TObject } from '@sinclair/typebox'
import { SkillDocumentSchema, SkillFileSchema, SkillListSchema } from '../schemas/skills.ts'
import { describeTool } from '../tools/dialects/dialect.ts'
import { REVISION_KEY } from '../tools/dialects/mcp.ts'
import { createToolRegistry, type ToolRegistry } from '../tools/registry.ts'
import { runTool, type ToolRun } from '../tools/run-tool.ts'

/** The tools of this door: those that any agent can use. */
const TOOLSET = 'reader'

/** Shapes of the results that are known; a failure is an error result without one. */
const OUTPUT_SCHEMAS: Readonly<Record<string, TObject>> = {
  list_skills: SkillListSchema,
  get_skill: SkillDocumentSchema,
  read_file_in_skill: SkillFileSchema
}

const ANNOTATIONS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

export function listTools (registry: ToolRegistry): ListToolsResult {
  return {
    tools: registry.list(TOOLSET).map((tool) => {
      const { name, parameters } = tool
      const output = Object.hasOwn(OUTPUT_SCHEMAS, name) ? OUTPUT_SCHEMAS[name] : undefined
      return {
        name,
        description: describeTool(tool),
        inputSchema: { ...parameters, required: [...parameters.required] },
        ...output && { outputSchema: plainSchema(output) },
        annotations: ANNOTATIONS
      }
    })
  }
}

/** Runs one tool: the same text as through `POST /agent/tool-call`, the result object, and the revision of the skill. */
export async function callTool (name: string, args: unknown, run: ToolRun): Promise<CallToolResult> {
  const { registry } = run
  const tool = registry.find(name)
  if (tool?.toolset !== TOOLSET) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, createToolRegistry(registry.list(TOOLSET)).unknownTool(name))
  }
  const outcome = await runTool(tool, args, run)
  const content = [{ type: 'text' as const, text: outcome.text }]
  if (outcome.isError) return { content, isError: true }
  const { revision } = outcome
  return {
    content,
    structuredContent: { ...outcome.result },
    ...revision !== undefined && { _meta: { [REVISION_KEY]: revision } }
  }
}

/** Without the name that it has in the OpenAPI document: to a client that compiles it, `$id` would be one. */
function plainSchema ({ properties, required = [] }: TObject): { type: 'object', properties: TObject['properties'], required: string[] } {
  return { type: 'object', properties, required: [...required] }
}
