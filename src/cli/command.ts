import type { Environment } from '../config/setting.ts'

/** Why a command cannot do what it was asked to do. The message is one line. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  /** Undefined: that of its command for wrong use. */
  readonly exitCode: number | undefined

  constructor (message: string, exitCode?: number) {
    super(message)
    this.exitCode = exitCode
  }
}

/** The arguments of a command, values not yet checked. */
export interface Arguments {
  readonly positionals: readonly string[]
  /** Values by name without dashes, in order; switches have none. */
  readonly flags: ReadonlyMap<string, readonly string[]>
}

/** What a command has of the process. */
export interface CommandContext {
  /** The names of all commands. */
  readonly commands: readonly string[]
  readonly env: Environment
  readonly cwd: string
  /** Writes to standard output. */
  readonly print: (text: string) => void
  /** Writes a line to standard error that changes no exit code. */
  readonly warn: (sentence: string) => void
  /** Shows a person at a terminal how far the command is. The line goes with the next output. */
  readonly progress?: (text: string) => void
  /**
   * Decides with which exit code SIGINT and SIGTERM end the process from now on; undefined: the command handles them.
   * At first it is that of a shell.
   */
  readonly endBySignal?: (code: number | undefined) => void
  /** Whether a person reads standard output. */
  readonly isTerminal?: boolean
}

/**
 * A command: resolves with the exit code, or with undefined while the process goes on by itself.
 * @throws CommandError, ConfigError: one line on standard error, exit code 1
 */
export type RunCommand = (args: Arguments, context: CommandContext) => Promise<number | undefined>
