import { anthropic } from './anthropic.ts'
import type { Dialect, ToolDefinition } from './dialect.ts'
import { gemini, geminiSnakeCase } from './gemini.ts'
import { mcp } from './mcp.ts'
import { openaiChat } from './openai-chat.ts'
import { openaiLegacy } from './openai-legacy.ts'
import { openaiResponses } from './openai-responses.ts'

/**
 * The wire shapes, in the order in which they are asked about an object and about its containers. A new dialect is a file
 * of its own and a line here, before the dialects that would match its calls too.
 */
const list = [openaiChat, openaiLegacy, openaiResponses, anthropic, gemini, geminiSnakeCase, mcp] as const

export const DIALECTS: readonly Dialect[] = list

type Defining = Extract<(typeof list)[number], { readonly writeDefinitions: unknown }>

/** The dialects that tool definitions can be written in. */
export type DefinitionFormat = Defining['name']

export const DEFINITION_FORMATS: readonly DefinitionFormat[] = list.flatMap((dialect) => 'writeDefinitions' in dialect ? [dialect.name] : [])

/** The tools as the provider's request wants them, in its `tools` array. */
export function writeDefinitions (format: DefinitionFormat, tools: readonly ToolDefinition[]): readonly object[] {
  return DIALECTS.find(({ name }) => name === format)?.writeDefinitions?.(tools) ?? []
}
