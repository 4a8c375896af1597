/** As in `providers.ts`: what the SDKs of other providers hand to a program, and what they take. */
import type { ContentBlock, ConverseCommandOutput, Message as BedrockMessage, Tool as BedrockTool } from '@aws-sdk/client-bedrock-runtime'
import type { Interactions } from '@google/genai'
import type { ToolCall as LangChainCall, ToolMessageFields } from '@langchain/core/messages'
import type { ChatCompletionResponse, ToolMessage as MistralMessage, Tool as MistralTool } from '@mistralai/mistralai/models/components'
import type { ToolModelMessage, ToolResultPart } from 'ai'
import type { Cohere } from 'cohere-ai'
import type { ChatResponse, Message as OllamaMessage, Tool as OllamaTool } from 'ollama'
import type { Run, RunSubmitToolOutputsParams } from 'openai/resources/beta/threads/runs/runs'
import type { langchain } from '../../../src/tools/dialects/sdk/langchain.ts'
import type { cohere, mistral } from '../../../src/tools/dialects/sdk/mistral-cohere.ts'
import type { vercel } from '../../../src/tools/dialects/sdk/vercel.ts'
import type { bedrock } from '../../../src/tools/dialects/wire/bedrock.ts'
import type { geminiInteractions } from '../../../src/tools/dialects/wire/gemini-interactions.ts'
import type { ollama } from '../../../src/tools/dialects/wire/ollama.ts'
import type { openaiAssistants } from '../../../src/tools/dialects/wire/openai-assistants.ts'
import type { openaiChat } from '../../../src/tools/dialects/wire/openai-chat.ts'
import type { ToolCallHandler } from '../../../src/tools/calls/tool-call.ts'
import type { Assignable, Call, Definition, Result } from './assignable.ts'

/** K40: `openai` is the form of three more. */
export type Definitions = [
  Assignable<Definition<typeof bedrock>, BedrockTool>,
  Assignable<Definition<typeof openaiChat>, MistralTool>,
  Assignable<Definition<typeof openaiChat>, Cohere.ToolV2>,
  Assignable<Definition<typeof openaiChat>, OllamaTool>
]

type BedrockResult = Result<typeof bedrock>['toolResult']

/** K34: results are ready to be sent back. */
export type Results = [
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
  Assignable<Call<typeof bedrock>, ContentBlock>,
  Assignable<Call<typeof langchain>, LangChainCall>,
  Assignable<Call<typeof geminiInteractions>, Interactions.FunctionCallStep>,
  Assignable<Call<typeof ollama>['message'], OllamaMessage>
]

/** Whole responses go in as they come. */
export type Inputs = Assignable<
  ConverseCommandOutput | ChatCompletionResponse | Cohere.V2ChatResponse | ChatResponse | Interactions.Interaction | Run,
  Parameters<ToolCallHandler>[0]
>
