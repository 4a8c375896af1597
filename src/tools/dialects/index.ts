import type { Dialect, ToolDefinition } from './dialect.ts'
import { langchain } from './sdk/langchain.ts'
import { cohere, mistral } from './sdk/mistral-cohere.ts'
import { vercel } from './sdk/vercel.ts'
import { anthropic } from './wire/anthropic.ts'
import { bedrock } from './wire/bedrock.ts'
import { geminiInteractions } from './wire/gemini-interactions.ts'
import { gemini, geminiSnakeCase } from './wire/gemini.ts'
import { mcp } from './wire/mcp.ts'
import { ollama } from './wire/ollama.ts'
import { openaiAssistants } from './wire/openai-assistants.ts'
import { openaiChat } from './wire/openai-chat.ts'
import { openaiLegacy } from './wire/openai-legacy.ts'
import { openaiResponses } from './wire/openai-responses.ts'

/**
 * The shapes of calls, in the order in which they are recognised. `wire` is what providers send, `sdk` what their SDKs
 * make of it. A new dialect is a file and a line here, before the dialects that would match its calls too.
 */
const list = [
  openaiChat, openaiLegacy, openaiResponses, openaiAssistants, anthropic, gemini, geminiSnakeCase, geminiInteractions,
  mcp, bedrock, ollama, mistral, cohere,
  vercel, langchain
] as const

export const DIALECTS: readonly Dialect[] = list

type Defining = Extract<(typeof list)[number], { readonly writeDefinitions: unknown }>

/** Names of the dialects that have tool definitions. */
export type DefinitionFormat = Defining['name']

export const DEFINITION_FORMATS: readonly DefinitionFormat[] = list.flatMap((dialect) =>
  'writeDefinitions' in dialect ? [dialect.name] : [])

/** Returns the elements of `tools` in a request to the provider. */
export function writeDefinitions (format: DefinitionFormat, tools: readonly ToolDefinition[]): readonly object[] {
  return DIALECTS.find(({ name }) => name === format)?.writeDefinitions?.(tools) ?? []
}
