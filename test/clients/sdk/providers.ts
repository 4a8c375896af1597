/**
 * Checked by the compiler (`npm run typecheck`): what providers send, take back and want in a request, against our calls, results
 * and definitions. The types are those of their own SDKs. Schemas stand for results: the tests of
 * the routes hold real answers against them.
 */
import type { Message, MessageParam, Tool as AnthropicTool, ToolResultBlockParam, ToolUseBlockParam } from '@anthropic-ai/sdk/resources/messages/messages'
import type { GenerateContentResponse, Part, Tool as GeminiTool } from '@google/genai'
import type { CallToolRequest, CallToolResult, JSONRPCRequest, JSONRPCResultResponse, Tool as McpTool } from '@modelcontextprotocol/client'
import type {
  ChatCompletion, ChatCompletionFunctionMessageParam, ChatCompletionFunctionTool, ChatCompletionMessage, ChatCompletionMessageFunctionToolCall, ChatCompletionToolMessageParam
} from 'openai/resources/chat/completions/completions'
import type { FunctionTool, Response, ResponseCustomToolCallOutput, ResponseFunctionToolCall, ResponseInputItem } from 'openai/resources/responses/responses'
import type { anthropic } from '../../../src/tools/dialects/wire/anthropic.ts'
import type { gemini } from '../../../src/tools/dialects/wire/gemini.ts'
import type { mcp } from '../../../src/tools/dialects/wire/mcp.ts'
import type { openaiChat } from '../../../src/tools/dialects/wire/openai-chat.ts'
import type { openaiLegacy } from '../../../src/tools/dialects/wire/openai-legacy.ts'
import type { openaiResponses } from '../../../src/tools/dialects/wire/openai-responses.ts'
import type { ToolCallHandler } from '../../../src/tools/calls/tool-call.ts'
import type { Assignable, Call, Definition, Result } from './assignable.ts'

/** K40: definitions are ready to stand in a request. */
export type Definitions = [
  Assignable<Definition<typeof openaiChat>, ChatCompletionFunctionTool>,
  Assignable<Definition<typeof openaiResponses>, FunctionTool>,
  Assignable<Definition<typeof anthropic>, AnthropicTool>,
  Assignable<Definition<typeof gemini>, GeminiTool>,
  Assignable<Definition<typeof mcp>, McpTool>
]

/** K34, K35: results are ready to be sent back. */
export type Results = [
  Assignable<Result<typeof openaiChat, 'tool_call_id'>, ChatCompletionToolMessageParam>,
  Assignable<Result<typeof openaiLegacy>, ChatCompletionFunctionMessageParam>,
  Assignable<Result<typeof openaiResponses, 'call_id'>, ResponseInputItem.FunctionCallOutput | ResponseCustomToolCallOutput>,
  Assignable<Result<typeof anthropic, 'tool_use_id'>, ToolResultBlockParam>,
  Assignable<{ role: 'user', content: Array<Result<typeof anthropic, 'tool_use_id'>> }, MessageParam>,
  Assignable<{ functionResponse: Omit<Result<typeof gemini>['functionResponse'], 'id'> & { id: string } }, Part>,
  Assignable<Result<typeof mcp, 'id', string | number>, JSONRPCResultResponse>,
  Assignable<Result<typeof mcp>['result'], CallToolResult>
]

/** The calls of our documents are calls of theirs. */
export type DocumentedCalls = [
  Assignable<Call<typeof openaiChat>, ChatCompletionMessageFunctionToolCall>,
  Assignable<Call<typeof openaiResponses>, ResponseFunctionToolCall>,
  Assignable<Call<typeof anthropic>, ToolUseBlockParam>,
  Assignable<Call<typeof gemini>, Part>,
  Assignable<Call<typeof mcp>, JSONRPCRequest & CallToolRequest>
]

/** K34: whole responses go in as they come. */
export type Inputs = Assignable<
  ChatCompletion | ChatCompletionMessage | Response | Message | GenerateContentResponse | CallToolRequest,
  Parameters<ToolCallHandler>[0]
>
