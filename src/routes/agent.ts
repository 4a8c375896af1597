import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifySchema, FastifySchemaCompiler } from 'fastify'
import type { SkillManager } from '../core/skill-manager.ts'
import { HttpProblem } from '../http/problem.ts'
import {
  ToolArgumentsSchema, ToolCallRequestSchema, ToolCallResponseSchema, ToolDefinitionsSchema, ToolParamsSchema, ToolQuerySchema,
  ToolResultSchema
} from '../schemas/agent.ts'
import { BODY_PROBLEMS, PATH_PROBLEMS } from '../openapi/problem-sets.ts'
import { jsonAnswer, notModifiedAnswer, problemAnswers, requestBody, resultAnswer } from '../openapi/responses.ts'
import { toolArgumentsExamples, toolCallAnswerExamples, toolCallExamples } from '../openapi/tool-call-examples.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import { runTool } from '../tools/run-tool.ts'
import type { ToolCallHandler } from '../tools/tool-call.ts'
import { toolDefinitions } from '../tools/tool-definitions.ts'
import { JSON_MEDIA_TYPE } from '../http/send-json.ts'
import { REVISION_HEADER } from '../http/revision.ts'

export interface AgentRoutesOptions {
  readonly registry: ToolRegistry
  readonly skills: SkillManager
  readonly handleToolCall: ToolCallHandler
}

/** What is wrong with a call is for the model to read, in the form of its dialect or tool: no schema refuses it first. */
const takeAnyBody: FastifySchemaCompiler<FastifySchema> = () => () => true

/** What a model's tool calls need. A tool's outcome is always a 200: it is for the model to read. */
export const agentRoutes: FastifyPluginAsyncTypebox<AgentRoutesOptions> = async function agentRoutes (app, { registry, skills, handleToolCall }) {
  app.post('/agent/tool-call', {
    schema: {
      operationId: 'callTools',
      summary: 'Run tool calls as a model made them',
      description: 'Takes the calls in the shape in which the provider gave them, and answers in the same shape: results to paste back into the conversation. At most 128 calls in one request; one that fails does not stop the rest.',
      tags: ['agent'],
      body: requestBody(ToolCallRequestSchema, toolCallExamples),
      response: {
        200: resultAnswer(ToolCallResponseSchema, 'The results', toolCallAnswerExamples),
        ...problemAnswers(...BODY_PROBLEMS, 'unrecognised_tool_call', 'too_many_calls')
      }
    },
    validatorCompiler: takeAnyBody
  }, async (request, reply) => {
    const answer = await handleToolCall(request.body, { requestId: request.id })
    switch (answer.kind) {
      case 'answer': return sendResult(reply, answer.json, answer.revision)
      case 'unrecognised': throw new HttpProblem('unrecognised_tool_call', answer.detail)
      case 'too_many_calls': throw new HttpProblem('too_many_calls', answer.detail)
    }
  })

  app.get('/agent/tools', {
    schema: {
      operationId: 'listTools',
      summary: 'Tool definitions for a model',
      description: 'The definitions of the tools in the form that a provider wants in a request.',
      tags: ['agent'],
      querystring: ToolQuerySchema,
      response: { 200: jsonAnswer(ToolDefinitionsSchema, 'The definitions'), 304: notModifiedAnswer(), ...problemAnswers('bad_query') }
    }
  }, async (request, reply) => {
    const { format = 'openai', toolset = 'reader' } = request.query
    // The description of `Skill` follows the index, which has nothing to say before it is complete.
    if (toolset === 'wave' || toolset === 'all') await skills.available()
    return reply.header('content-type', JSON_MEDIA_TYPE).send(JSON.stringify(toolDefinitions(registry, format, toolset)))
  })

  app.post('/agent/tools/:name', {
    schema: {
      operationId: 'callTool',
      summary: 'Run one tool',
      description: 'The arguments as the JSON body; answers with the result object of the tool, also for a failure of the tool.',
      tags: ['agent'],
      params: ToolParamsSchema,
      body: requestBody(ToolArgumentsSchema, toolArgumentsExamples),
      response: {
        200: resultAnswer(ToolResultSchema, 'The result'),
        ...problemAnswers(...BODY_PROBLEMS, ...PATH_PROBLEMS, 'tool_not_found')
      }
    },
    validatorCompiler: takeAnyBody
  }, async (request, reply) => {
    const { name } = request.params
    const tool = registry.find(name)
    if (tool === undefined) throw new HttpProblem('tool_not_found', registry.unknownTool(name))
    const outcome = await runTool(tool, request.body, { registry, log: request.log, fields: { reqId: request.id } })
    return sendResult(reply, outcome.json, outcome.revision)
  })
}

/** As text: Node writes it together with the head, and a buffer for each answer would keep the garbage collector busy. */
function sendResult (reply: FastifyReply, json: string, revision: string | undefined): FastifyReply {
  if (revision !== undefined) reply.header(REVISION_HEADER, revision)
  return reply.header('content-type', JSON_MEDIA_TYPE).send(json)
}
