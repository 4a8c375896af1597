import { overloadError, SkillError } from '../core/shared/errors.ts'
import type { View } from '../core/view.ts'
import { printable } from '../core/shared/text.ts'
import {
  failWithError, type Tool, type ToolArguments, ToolArgumentsError, type ToolFailure, ToolLimitError, type ToolOutcome,
  type Toolset
} from './tool.ts'

export type ToolRegistry = ReturnType<typeof createToolRegistry>

interface ToolRegistryOptions {
  /** Receives unexpected errors, and errors of the operating system, which callers do not see. */
  readonly onError?: (error: unknown, toolName: string) => void
  /** Whether the process is overloaded: costly tools are refused then. Default: never. */
  readonly isOverloaded?: () => boolean
}

/** The toolsets that each toolset includes: finding a skill or a file is of no use without the tools that read it. */
const CONTENTS: Readonly<Record<Toolset, readonly Toolset[]>> = {
  reader: ['reader'],
  explore: ['reader', 'explore'],
  wave: ['wave'],
  neovate: ['neovate']
}

/** @throws {Error} when two tools have the same name */
export function createToolRegistry (
  tools: readonly Tool[], { onError = () => {}, isOverloaded = () => false }: ToolRegistryOptions = {}
) {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  if (byName.size !== tools.length) throw new Error('Two tools have the same name')
  const isIn = (tool: Tool, toolset?: Toolset) => toolset === undefined || CONTENTS[toolset].includes(tool.toolset)
  const list = (toolset?: Toolset) => tools.filter((tool) => isIn(tool, toolset))

  /** Returns an error that a tool threw for its caller; hides others, which `onError` gets. */
  function asFailure (error: unknown, tool: Tool): ToolFailure {
    if (error instanceof ToolArgumentsError || error instanceof ToolLimitError) return error
    if (error instanceof SkillError) {
      if (error.cause !== undefined) onError(error, tool.name)
      return error
    }
    onError(error, tool.name)
    return new SkillError('file_io_error', 'The tool failed unexpectedly')
  }

  async function fail (tool: Tool, error: unknown, args: ToolArguments, skills: View): Promise<ToolOutcome> {
    const failure = asFailure(error, tool)
    try {
      return await tool.fail(failure, args, skills)
    } catch (second) {
      return await failWithError(asFailure(second, tool))
    }
  }

  return {
    /** Lists the tools of one toolset and of those that it includes, or all of them, in the order of registration. */
    list,

    /** @param toolset the toolset to search; default: all tools */
    find (name: string, toolset?: Toolset): Tool | undefined {
      const tool = byName.get(name)
      return tool !== undefined && isIn(tool, toolset) ? tool : undefined
    },

    /** Runs a tool. Never throws: every failure is an outcome in the tool's own form. */
    async call (tool: Tool, args: ToolArguments, skills: View): Promise<ToolOutcome> {
      try {
        if (tool.isCostly === true && isOverloaded()) throw overloadError.busy()
        return await tool.run(args, skills)
      } catch (error) {
        return await fail(tool, error, args, skills)
      }
    },

    /** Returns the outcome of a call that is not run, in the tool's own form. Never throws. */
    refuse: fail,

    /** Returns `Unknown tool: <name>`, with the names of the toolset that the model was given. */
    unknownTool: (name: string, toolset?: Toolset): string =>
      `Unknown tool: ${printable(name)}. Available tools: ${list(toolset).map((tool) => tool.name).join(', ')}`
  }
}
