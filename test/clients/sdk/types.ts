/**
 * Checked by the compiler (`npm run test:clients`): what providers and their SDKs hand to a program, take back and want
 * in a request, against our calls, results and definitions. Schemas stand for results: the tests of the routes hold
 * real answers against them.
 */
import type {
  Message, MessageParam, Tool as AnthropicTool, ToolResultBlockParam, ToolUseBlockParam
} from '@anthropic-ai/sdk/resources/messages/messages'
import type {
  ContentBlock, ConverseCommandOutput, Message as BedrockMessage, Tool as BedrockTool
} from '@aws-sdk/client-bedrock-runtime'
import type { GenerateContentResponse, Part, Tool as GeminiTool } from '@google/genai'
import type { Interactions } from '@google/genai'
import type { ToolCall as LangChainCall, ToolMessageFields } from '@langchain/core/messages'
import type {
  ChatCompletionResponse, ToolMessage as MistralMessage, Tool as MistralTool
} from '@mistralai/mistralai/models/components'
import type {
  CallToolRequest, CallToolResult, JSONRPCRequest, JSONRPCResultResponse, Tool as McpTool
} from '@modelcontextprotocol/client'
import type { Static, TSchema } from '@sinclair/typebox'
import type { ToolModelMessage, ToolResultPart } from 'ai'
import type { Cohere } from 'cohere-ai'
import type { ChatResponse, Message as OllamaMessage, Tool as OllamaTool } from 'ollama'
import type { Run, RunSubmitToolOutputsParams } from 'openai/resources/beta/threads/runs/runs'
import type {
  ChatCompletion, ChatCompletionFunctionMessageParam, ChatCompletionFunctionTool, ChatCompletionMessage,
  ChatCompletionMessageFunctionToolCall, ChatCompletionToolMessageParam
} from 'openai/resources/chat/completions/completions'
import type {
  FunctionTool, Response, ResponseCustomToolCallOutput, ResponseFunctionToolCall, ResponseInputItem
} from 'openai/resources/responses/responses'
import type { ToolCallHandler } from '../../../src/tools/calls/tool-call.ts'
import type { langchain } from '../../../src/tools/dialects/sdk/langchain.ts'
import type { cohere, mistral } from '../../../src/tools/dialects/sdk/mistral-cohere.ts'
import type { vercel } from '../../../src/tools/dialects/sdk/vercel.ts'
import type { anthropic } from '../../../src/tools/dialects/wire/anthropic.ts'
import type { bedrock } from '../../../src/tools/dialects/wire/bedrock.ts'
import type { geminiInteractions } from '../../../src/tools/dialects/wire/gemini-interactions.ts'
import type { gemini } from '../../../src/tools/dialects/wire/gemini.ts'
import type { mcp } from '../../../src/tools/dialects/wire/mcp.ts'
import type { ollama } from '../../../src/tools/dialects/wire/ollama.ts'
import type { openaiAssistants } from '../../../src/tools/dialects/wire/openai-assistants.ts'
import type { openaiChat } from '../../../src/tools/dialects/wire/openai-chat.ts'
import type { openaiLegacy } from '../../../src/tools/dialects/wire/openai-legacy.ts'
import type { openaiResponses } from '../../../src/tools/dialects/wire/openai-responses.ts'

/** Does not compile unless the first is assignable to the second. */
type Assignable<Ours extends Theirs, Theirs> = [Ours, Theirs]

/**
 * As JSON has it, once it has been sent: providers' types know no `readonly`, and index signatures only of type
 * literals.
 */
type Sent<T> = { -readonly [Key in keyof T]: Sent<T[Key]> }

type Definition<Dialect extends {
  writeDefinitions (tools: never): readonly unknown[]
}> = Sent<ReturnType<Dialect['writeDefinitions']>[number]>
type Call<Dialect extends { readonly example: unknown }> = Sent<Dialect['example']>

/** The result of a call that had this kind of id. */
type Result<Dialect extends { readonly resultSchema: TSchema }, IdKey extends PropertyKey = never, Id = string> =
  Omit<Static<Dialect['resultSchema']>, IdKey> & { [Key in IdKey]: Id }

/** K40: definitions are ready to stand in a request; `openai` is the form of three more. */
export type Definitions = [
  Assignable<Definition<typeof openaiChat>, ChatCompletionFunctionTool>,
  Assignable<Definition<typeof openaiResponses>, FunctionTool>,
  Assignable<Definition<typeof anthropic>, AnthropicTool>,
  Assignable<Definition<typeof gemini>, GeminiTool>,
  Assignable<Definition<typeof mcp>, McpTool>,
  Assignable<Definition<typeof bedrock>, BedrockTool>,
  Assignable<Definition<typeof openaiChat>, MistralTool>,
  Assignable<Definition<typeof openaiChat>, Cohere.ToolV2>,
  Assignable<Definition<typeof openaiChat>, OllamaTool>
]

type BedrockResult = Result<typeof bedrock>['toolResult']

/** K34, K35: results are ready to be sent back. */
export type Results = [
  Assignable<Result<typeof openaiChat, 'tool_call_id'>, ChatCompletionToolMessageParam>,
  Assignable<Result<typeof openaiLegacy>, ChatCompletionFunctionMessageParam>,
  Assignable<
    Result<typeof openaiResponses, 'call_id'>, ResponseInputItem.FunctionCallOutput | ResponseCustomToolCallOutput
  >,
  Assignable<Result<typeof anthropic, 'tool_use_id'>, ToolResultBlockParam>,
  Assignable<{ role: 'user', content: Array<Result<typeof anthropic, 'tool_use_id'>> }, MessageParam>,
  Assignable<{ functionResponse: Omit<Result<typeof gemini>['functionResponse'], 'id'> & { id: string } }, Part>,
  Assignable<Result<typeof mcp, 'id', string | number>, JSONRPCResultResponse>,
  Assignable<Result<typeof mcp>['result'], CallToolResult>,
  Assignable<{ toolResult: Omit<BedrockResult, 'toolUseId'> & { toolUseId: string } }, ContentBlock>,
  Assignable<{ role: 'user', content: ContentBlock[] }, BedrockMessage>,
  Assignable<Result<typeof mistral, 'toolCallId'>, MistralMessage>,
  Assignable<Result<typeof cohere, 'toolCallId'>, Cohere.ChatMessageV2.Tool>,
  Assignable<Result<typeof vercel, 'toolCallId'>, ToolResultPart>,
  Assignable<{ role: 'tool', content: Array<Result<typeof vercel, 'toolCallId'>> }, ToolModelMessage>,
  Assignable<Result<typeof langchain, 'tool_call_id'>, ToolMessageFields>,
  Assignable<Result<typeof geminiInteractions, 'call_id'>, Interactions.FunctionResultStep>,
  Assignable<Omit<Result<typeof ollama>, 'tool_call_id'>, OllamaMessage>,
  Assignable<Result<typeof openaiAssistants, 'tool_call_id'>, RunSubmitToolOutputsParams.ToolOutput>
]

/** The calls of our documents are calls of theirs. */
export type DocumentedCalls = [
  Assignable<Call<typeof openaiChat>, ChatCompletionMessageFunctionToolCall>,
  Assignable<Call<typeof openaiResponses>, ResponseFunctionToolCall>,
  Assignable<Call<typeof anthropic>, ToolUseBlockParam>,
  Assignable<Call<typeof gemini>, Part>,
  Assignable<Call<typeof mcp>, JSONRPCRequest & CallToolRequest>,
  Assignable<Call<typeof bedrock>, ContentBlock>,
  Assignable<Call<typeof langchain>, LangChainCall>,
  Assignable<Call<typeof geminiInteractions>, Interactions.FunctionCallStep>,
  Assignable<Call<typeof ollama>['message'], OllamaMessage>
]

/** K34: whole responses go in as they come. */
export type Inputs = Assignable<
  ChatCompletion | ChatCompletionMessage | Response | Message | GenerateContentResponse | CallToolRequest |
  ConverseCommandOutput | ChatCompletionResponse | Cohere.V2ChatResponse | ChatResponse |
  Interactions.Interaction | Run,
  Parameters<ToolCallHandler>[0]
>
