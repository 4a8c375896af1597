/**
 * Held together by the compiler (`npm run typecheck`): what providers send, what they take back and what they want in a
 * request, by their own SDKs' types, against our calls, results and definitions. The examples stand for results: the tests
 * of the routes hold real answers against them.
 */
import type { Message, MessageParam, Tool as AnthropicTool, ToolResultBlockParam, ToolUseBlockParam } from '@anthropic-ai/sdk/resources/messages/messages'
import type { GenerateContentResponse, Part, Tool as GeminiTool } from '@google/genai'
import type { CallToolRequest, CallToolResult, JSONRPCRequest, JSONRPCResultResponse, Tool as McpTool } from '@modelcontextprotocol/client'
import type {
  ChatCompletion, ChatCompletionFunctionTool, ChatCompletionMessage, ChatCompletionMessageFunctionToolCall, ChatCompletionToolMessageParam
} from 'openai/resources/chat/completions/completions'
import type { FunctionTool, Response, ResponseFunctionToolCall, ResponseInputItem } from 'openai/resources/responses/responses'
import type { toolCallAnswerExamples, toolCallExamples } from '../../src/openapi/tool-call-examples.ts'
import type { anthropic } from '../../src/tools/dialects/anthropic.ts'
import type { gemini } from '../../src/tools/dialects/gemini.ts'
import type { mcp } from '../../src/tools/dialects/mcp.ts'
import type { openaiChat } from '../../src/tools/dialects/openai-chat.ts'
import type { openaiResponses } from '../../src/tools/dialects/openai-responses.ts'
import type { ToolCallHandler } from '../../src/tools/tool-call.ts'

/** Does not compile unless the first is assignable to the second. */
type Assignable<Ours extends Theirs, Theirs> = [Ours, Theirs]

/** As JSON has it, once it has been sent: providers' types know no `readonly`, and index signatures only of type literals. */
type Sent<T> = { -readonly [Key in keyof T]: Sent<T[Key]> }

type Definition<Dialect extends { writeDefinitions (tools: never): readonly unknown[] }> = Sent<ReturnType<Dialect['writeDefinitions']>[number]>
type Answers = { [Name in keyof typeof toolCallAnswerExamples]: Sent<(typeof toolCallAnswerExamples)[Name]['value']> }
type Calls = { [Name in keyof typeof toolCallExamples]: Sent<(typeof toolCallExamples)[Name]['value']> }

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
  Assignable<Answers['openai'], ChatCompletionToolMessageParam>,
  Assignable<Answers['openaiBatch'], ChatCompletionToolMessageParam[]>,
  Assignable<Answers['openaiResponses'], ResponseInputItem.FunctionCallOutput>,
  Assignable<Answers['anthropic'], ToolResultBlockParam>,
  Assignable<{ role: 'user', content: Array<Answers['anthropic']> }, MessageParam>,
  Assignable<Answers['gemini'], Part>,
  Assignable<Answers['mcp'], JSONRPCResultResponse>,
  Assignable<Answers['mcp']['result'], CallToolResult>
]

/** The calls of our documents are calls of theirs. */
export type DocumentedCalls = [
  Assignable<Calls['openai'], ChatCompletionMessageFunctionToolCall>,
  Assignable<Calls['openaiBatch'], Pick<Required<ChatCompletionMessage>, 'tool_calls'>>,
  Assignable<Calls['openaiResponses'], ResponseFunctionToolCall>,
  Assignable<Calls['anthropic'], ToolUseBlockParam>,
  Assignable<Calls['gemini'], Part>,
  Assignable<Calls['mcp'], JSONRPCRequest & CallToolRequest>
]

/** K34: whole responses go in as they come. */
export type Inputs = Assignable<
  ChatCompletion | ChatCompletionMessage | Response | Message | GenerateContentResponse | CallToolRequest,
  Parameters<ToolCallHandler>[0]
>
