import { Type } from '@sinclair/typebox'
import { own } from '../../../core/shared/json.ts'
import { callsIn, type Dialect, IdSchema } from '../dialect.ts'
import { FUNCTION_CALL_EXAMPLE, isFunctionCall, readFunctionCall } from '../function-call.ts'

/** OpenAI Assistants: the run that waits for outputs, answered by the `tool_outputs` of its next request. */
export const openaiAssistants = {
  name: 'openai-assistants',
  title: 'OpenAI Assistants',

  resultSchema: Type.Object({ tool_call_id: Type.Optional(IdSchema), output: Type.String() }),
  example: {
    required_action: { type: 'submit_tool_outputs', submit_tool_outputs: { tool_calls: [FUNCTION_CALL_EXAMPLE] } }
  },

  unwrap: (value) => callsIn(own(own(own(value, 'required_action'), 'submit_tool_outputs'), 'tool_calls')),

  recogniseInside: isFunctionCall,

  isAnswer: (value) => Array.isArray(own(value, 'tool_outputs')),

  readCall: readFunctionCall,

  writeResult: ({ id }, { text }) => ({ tool_call_id: id, output: text })
} as const satisfies Dialect
