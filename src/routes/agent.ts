import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from '@sinclair/typebox'
import type { FastifyBaseLogger, FastifyRequest } from 'fastify'
import type { SkillsOf } from '../http/callers.ts'
import { HttpProblem } from '../http/problem.ts'
import { RevisionQuerySchema } from '../schemas/skills.ts'
import { confirmPinnedRevision, viewAtRevision } from '../http/revision.ts'
import {
  toolArgumentsExamples, ToolArgumentsSchema, toolCallAnswerExamples, toolCallExamples, ToolCallQuerySchema,
  ToolCallRequestSchema, ToolCallResponseSchema, ToolDefinitionsSchema, ToolParamsSchema, ToolQuerySchema,
  toolResultExamples, ToolResultSchema
} from '../openapi/tool-schemas.ts'
import { answer, json, requestBody, resultAnswer } from '../openapi/responses.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import { own } from '../core/shared/json.ts'
import type { ToolObserver } from '../tools/calls/observer.ts'
import { confirmSkills } from '../tools/calls/confirm-skills.ts'
import { runTool } from '../tools/calls/run-tool.ts'
import { createToolCallHandler, DEFAULT_TOOLSET } from '../tools/calls/tool-call.ts'
import type { Tool } from '../tools/tool.ts'
import { toolDefinitions } from '../tools/tool-definitions.ts'
import { jsonText } from '../http/send/json.ts'

type ToolQuery = Static<typeof ToolQuerySchema>

interface AgentRoutesOptions {
  readonly registry: ToolRegistry
  readonly skillsOf: SkillsOf
  readonly log: FastifyBaseLogger
  readonly observer?: ToolObserver | undefined
  /** Takes units of the caller's limit for a call: see `ToolCallContext`. */
  readonly admitCall?: ((request: FastifyRequest, tool: Tool | undefined) => Promise<string | undefined>) | undefined
}

/** Serves definitions and calls of tools. Failed calls are answered with 200 too: the model reads the result. */
export const agentRoutes: FastifyPluginAsyncTypebox<AgentRoutesOptions> = async function agentRoutes (app, options) {
  const { registry, skillsOf, log, observer, admitCall } = options
  const handleToolCall = createToolCallHandler({ registry, log, observer })

  app.post('/agent/tool-call', {
    config: { reads: { api: 'tool-call' } },
    schema: {
      operationId: 'callTools',
      summary: 'Run tool calls as a model made them',
      description: 'Takes the calls in the shape in which the provider gave them, and answers in the same shape. The ' +
        'results go back into the conversation. At most 128 calls in one request; one that fails does not stop the ' +
        'rest.',
      tags: ['agent'],
      querystring: ToolCallQuerySchema,
      body: requestBody(ToolCallRequestSchema, toolCallExamples),
      response: { 200: resultAnswer(ToolCallResponseSchema, 'The results', toolCallAnswerExamples) }
    }
  }, async (request, reply) => {
    const skills = viewAtRevision(request, skillsOf(request))
    const { toolset, others } = request.query
    const called = await handleToolCall(request.body, {
      skills,
      requestId: request.id,
      confirmSkill: confirmPinnedRevision(request),
      toolset,
      skipOthers: others === 'skip',
      origin: request,
      admit: admitCall && ((tool) => admitCall(request, tool))
    })
    switch (called.kind) {
      case 'answer': return jsonText(reply, called.json)
      case 'unrecognised': throw new HttpProblem('unrecognised_tool_call', called.detail)
      case 'too_many_calls': throw new HttpProblem('too_many_calls', called.detail)
    }
  })

  app.get('/agent/tools', {
    config: { reads: ({ query }) => hasSkills(query as ToolQuery) ? { event: 'skill.list', api: 'rest' } : 'nothing' },
    schema: {
      operationId: 'listTools',
      summary: 'Tool definitions for a model',
      description: 'The definitions of the tools in the form that a provider wants in a request.',
      tags: ['agent'],
      querystring: ToolQuerySchema,
      response: { 200: answer('The definitions', json(ToolDefinitionsSchema)) }
    }
  }, async (request, reply) => {
    const { format = 'openai', toolset = DEFAULT_TOOLSET } = request.query
    const skills = skillsOf(request)
    // Before the first index is complete, it has no skills.
    if (hasSkills(request.query)) await skills.available()
    return jsonText(reply, JSON.stringify(toolDefinitions(registry, { format, toolset, skills })))
  })

  app.post('/agent/tools/:name', {
    config: {
      reads: { api: 'rest' },
      weight: ({ params }) => registry.find(String(own(params, 'name')))?.isCostly === true ? 'costly' : undefined
    },
    schema: {
      operationId: 'callTool',
      summary: 'Run one tool',
      description: 'The arguments as the JSON body; answers with the result object of the tool, also for a failure ' +
        'of the tool.',
      tags: ['agent'],
      params: ToolParamsSchema,
      querystring: RevisionQuerySchema,
      body: requestBody(ToolArgumentsSchema, toolArgumentsExamples),
      response: { 200: resultAnswer(ToolResultSchema, 'The result', toolResultExamples) }
    }
  }, async (request, reply) => {
    const { name } = request.params
    const tool = registry.find(name)
    if (tool === undefined) throw new HttpProblem('tool_not_found', registry.unknownTool(name))
    const skills = viewAtRevision(request, skillsOf(request))
    const confirmSkill = confirmPinnedRevision(request)
    if (confirmSkill !== undefined) await confirmSkills([{ tool, args: request.body }], skills, confirmSkill)
    const outcome = await runTool(
      tool,
      request.body,
      { skills, registry, log, fields: { reqId: request.id }, observer, origin: request }
    )
    return jsonText(reply, JSON.stringify(outcome.result))
  })
}

/** Whether definitions list skills: the description of `Skill` does, unless its source document fixes the text. */
function hasSkills ({ format = 'openai', toolset = DEFAULT_TOOLSET }: ToolQuery): boolean {
  return (toolset === 'wave' || toolset === 'all') && format !== 'openai'
}
