import type { Environment } from '../operator/setting.ts'

export interface Arguments<Options = object> {
  readonly positionals: readonly string[]
  /** By the names of its flags in camel case. Settings are texts that are not checked yet. */
  readonly options: Options
}

export interface CommandContext {
  readonly commands: readonly string[]
  readonly env: Environment
  readonly cwd: string
  readonly print: (text: string) => void
  /** Writes a line to standard error that changes no exit code. */
  readonly warn: (sentence: string) => void
  /** Whether a person reads standard output. */
  readonly isTerminal?: boolean
}

/**
 * A command: resolves with the exit code, or with undefined while the process goes on by itself.
 * @throws ConfigError: one line on standard error, and the exit code for wrong use
 */
export type RunCommand<Options = object> = (
  args: Arguments<Options>, context: CommandContext
) => Promise<number | undefined>
