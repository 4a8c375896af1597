import { Type } from '@sinclair/typebox'
import type { Test } from 'tap'
import type { SkillManager, SkillManagerOptions } from '../../src/core/skill-manager.ts'
import { createToolRegistry, type ToolRegistry } from '../../src/tools/registry.ts'
import { ErrorResultSchema, type Tool, ToolOutcome } from '../../src/tools/tool.ts'
import { createTools } from '../../src/tools/tools.ts'
import type { Files } from '../helper/build.ts'
import { startManager } from '../helper/skills.ts'

interface Tools {
  readonly root: string
  readonly skills: SkillManager
  readonly registry: ToolRegistry
  /** The outcome of a tool, and its result as JSON. */
  call (name: string,
    args?: unknown): Promise<Pick<ToolOutcome, 'result' | 'text' | 'isError'> & { readonly json: string }>
}

/** All tools, over skills in the test's folder. */
export async function startTools (t: Test, files: Files, options: Partial<SkillManagerOptions> = {}): Promise<Tools> {
  const root = t.testdir(files)
  const skills = await startManager(t, [root], options)
  const registry = createToolRegistry(createTools())
  return {
    root,
    skills,
    registry,
    async call (name, args = {}) {
      const { result, text, isError } = await registry.call(toolOf(registry, name), { ...args as object }, skills)
      return { result, text, isError, json: JSON.stringify(result) }
    }
  }
}

export function toolOf (registry: ToolRegistry, name: string): Tool {
  const tool = registry.find(name)
  if (tool === undefined) throw new Error(`no tool ${name}`)
  return tool
}

/** A tool of the test's own; its failures are `FAILED <sentence>`. */
export function fakeTool (members: Partial<Tool>): Tool {
  return {
    name: 'fake',
    toolset: 'reader',
    description: '',
    parameters: { type: 'object', properties: {}, required: [] },
    reads: { event: 'skill.list' },
    resultSchema: Type.Object({}),
    failureSchema: ErrorResultSchema,
    example: { args: {}, outcome: new ToolOutcome({}, '') },
    run: async () => new ToolOutcome({}, ''),
    fail: async (error) => new ToolOutcome({ error: error.message }, `FAILED ${error.message}`, true),
    ...members
  }
}
