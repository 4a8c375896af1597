import type { Environment } from '../operator/setting.ts'

export interface Arguments<Options = object> {
  readonly positionals: readonly string[]
  /** Values of flags by their names in camel case. Values of settings are unchecked text. */
  readonly options: Options
}

export interface CommandContext {
  readonly commands: readonly string[]
  readonly env: Environment
  readonly cwd: string
  readonly print: (text: string) => void
  /** Writes a line to standard error. The exit code stays the same. */
  readonly warn: (sentence: string) => void
  /** Whether standard output is a terminal. */
  readonly isTerminal?: boolean
}

/**
 * Runs a command. Resolves with the exit code, or with undefined if the process keeps running.
 * @throws ConfigError for wrong use, which is printed as one line on standard error
 */
export type RunCommand<Options = object> = (
  args: Arguments<Options>, context: CommandContext
) => Promise<number | undefined>
