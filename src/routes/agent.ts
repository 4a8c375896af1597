import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { HttpProblem } from '../plugins/errors.ts'
import {
  ToolArgumentsSchema, ToolCallRequestSchema, ToolCallResponseSchema, ToolDefinitionsSchema, ToolParamsSchema, ToolQuerySchema,
  ToolResultSchema
} from '../schemas/agent.ts'
import { json, notModified, problems, reference } from '../schemas/responses.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import type { ToolCallHandler } from '../tools/tool-call.ts'
import { toolDefinitions } from '../tools/tool-definitions.ts'
import type { ToolArguments } from '../tools/tool.ts'
import { JSON_MEDIA_TYPE } from './outcome.ts'

export interface AgentRoutesOptions {
  readonly registry: ToolRegistry
  readonly handleToolCall: ToolCallHandler
}

/** K34–K40: what a model's tool calls need. A tool's outcome is always a 200: it is for the model to read (K38). */
export const agentRoutes: FastifyPluginAsyncTypebox<AgentRoutesOptions> = async function agentRoutes (app, { registry, handleToolCall }) {
  app.post('/agent/tool-call', {
    schema: {
      operationId: 'callTools',
      summary: 'Run tool calls as a model made them',
      description: 'Takes the calls in the shape in which the provider gave them, and answers in the same shape: results to paste back into the conversation.',
      tags: ['agent'],
      body: reference(ToolCallRequestSchema),
      response: { 200: json(ToolCallResponseSchema, 'The results'), ...problems(400, 403, 413, 415) }
    }
  }, async (request, reply) => {
    const answer = await handleToolCall(request.body, { requestId: request.id })
    switch (answer.kind) {
      case 'answer': return reply.header('content-type', JSON_MEDIA_TYPE).send(answer.json)
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
      response: { 200: json(ToolDefinitionsSchema, 'The definitions'), 304: notModified(), ...problems(400, 403) }
    }
  }, async (request, reply) => {
    const { format = 'openai', toolset = 'reader' } = request.query
    return reply.header('content-type', JSON_MEDIA_TYPE).send(JSON.stringify(toolDefinitions(registry, format, toolset)))
  })

  app.post('/agent/tools/:name', {
    schema: {
      operationId: 'callTool',
      summary: 'Run one tool',
      description: 'The arguments as the JSON body; answers with the result object of the tool, also for a failure of the tool.',
      tags: ['agent'],
      params: ToolParamsSchema,
      body: reference(ToolArgumentsSchema),
      response: { 200: json(ToolResultSchema, 'The result'), ...problems(400, 403, 404, 413, 415) }
    }
  }, async (request, reply) => {
    const { name } = request.params
    const tool = registry.find(name)
    if (tool === undefined) throw new HttpProblem('tool_not_found', registry.unknownTool(name))
    const outcome = await registry.call(tool, request.body as ToolArguments)
    return reply.header('content-type', JSON_MEDIA_TYPE).send(outcome.json)
  })
}
