import { SkillError } from '../core/errors.ts'
import type { SkillSource } from '../core/skill-source.ts'
import type { Awaitable } from '../core/async.ts'
import { createGetSkillTool } from './get-skill.ts'
import { createListSkillsTool } from './list-skills.ts'
import { createNeovateSkillTool } from './neovate-skill.ts'
import { createReadFileInSkillTool } from './read-file-in-skill.ts'
import { printable } from './printable.ts'
import { failWithError } from './error-result.ts'
import { type Tool, type ToolArguments, ToolArgumentsError, type ToolFailure, ToolLimitError, type ToolOutcome, type Toolset } from './tool.ts'
import { createSearchSkillsTool } from './search-skills.ts'
import { createWaveSkillTool } from './wave-skill.ts'

/** All tools, found by their exact names. */
export interface ToolRegistry {
  /** The tools of one toolset and of those that it contains, or all of them, in the order of registration. */
  list (toolset?: Toolset): readonly Tool[]

  find (name: string): Tool | undefined

  /** Runs a tool. Never throws: every failure is an outcome in the tool's own form. */
  call (tool: Tool, args: ToolArguments): Awaitable<ToolOutcome>

  /** The outcome of a call that is not run, in the tool's own form. Never throws. */
  refuse (tool: Tool, failure: ToolFailure): Promise<ToolOutcome>

  /** `Unknown tool: <name>` and the names there are. */
  unknownTool (name: string): string
}

export interface ToolRegistryOptions {
  /** Told what the callers are not: unexpected errors, and SkillErrors with what the operating system said as `cause`. */
  readonly onError?: (error: unknown, toolName: string) => void
}

/** What a toolset contains: to find a skill is of no use without the tools that read it. */
const CONTENTS: Readonly<Record<Toolset, readonly Toolset[]>> = {
  reader: ['reader'],
  search: ['reader', 'search'],
  wave: ['wave'],
  neovate: ['neovate']
}

/** Every tool of the service. */
export function createTools (options: { readonly source: SkillSource }): readonly Tool[] {
  return [
    createListSkillsTool(options),
    createGetSkillTool(options),
    createReadFileInSkillTool(options),
    createWaveSkillTool(options),
    createNeovateSkillTool(options),
    createSearchSkillsTool(options)
  ]
}

/** @throws {Error} when two tools have the same name */
export function createToolRegistry (tools: readonly Tool[], { onError = () => {} }: ToolRegistryOptions = {}): ToolRegistry {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  if (byName.size !== tools.length) throw new Error('Two tools have the same name')
  const names = tools.map(({ name }) => name).join(', ')

  /** Nothing that a tool did not mean to say reaches a caller. */
  function asFailure (error: unknown, tool: Tool): ToolFailure {
    if (error instanceof ToolArgumentsError || error instanceof ToolLimitError) return error
    if (error instanceof SkillError) {
      if (error.cause !== undefined) onError(error, tool.name)
      return error
    }
    onError(error, tool.name)
    return new SkillError('file_io_error', 'The tool failed unexpectedly')
  }

  async function fail (tool: Tool, error: unknown, args: ToolArguments): Promise<ToolOutcome> {
    const failure = asFailure(error, tool)
    try {
      return await tool.fail(failure, args)
    } catch (second) {
      return failWithError(asFailure(second, tool))
    }
  }

  return {
    list: (toolset) => toolset === undefined ? tools : tools.filter((tool) => CONTENTS[toolset].includes(tool.toolset)),

    find: (name) => byName.get(name),

    call (tool, args) {
      try {
        const outcome = tool.run(args)
        return outcome instanceof Promise ? outcome.catch((error: unknown) => fail(tool, error, args)) : outcome
      } catch (error) {
        return fail(tool, error, args)
      }
    },

    refuse: (tool, failure) => fail(tool, failure, {}),

    unknownTool: (name) => `Unknown tool: ${printable(name)}. Available tools: ${names}`
  }
}
