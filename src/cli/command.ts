import type { Arguments } from './arguments.ts'

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

/** What a command has of the process. */
export interface CommandContext {
  readonly commands: CommandTable
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Writes to standard output. */
  readonly print: (text: string) => void
  /** Whether a person reads standard output. */
  readonly isTerminal?: boolean
}

/** The command of a command line that names none. */
export const DEFAULT_COMMAND = 'serve'

/** A command, in a file of its own. All are loaded at each start: what is large, `run` imports. */
export interface Command {
  /** What it does, as `help` says it in one line. */
  readonly summary: string
  /** Names of flags that take a value, without dashes. Every command has `--help` and `--version` besides. */
  readonly flags?: readonly string[]
  /** Names of flags without a value, without dashes. */
  readonly switches?: readonly string[]
  /** Flags that may have a value, without dashes, with the value that they have without. */
  readonly optionalFlags?: Readonly<Record<string, string>>
  /** What follows the command's name in its usage (`[DIR...]`). Absent: the command takes flags only. */
  readonly positionals?: string
  /** Exit code for wrong use; default 1. */
  readonly misuse?: number
  /** What `--help` prints below usage and summary: flags, exit codes. */
  readonly details?: () => string
  /**
   * Resolves with the exit code, or with undefined while the process goes on by itself.
   * @throws CommandError, ConfigError: one line on standard error, exit code 1
   */
  readonly run: (args: Arguments, context: CommandContext) => Promise<number | undefined>
}

/** All commands by name, in the order of `help`. */
export type CommandTable = Readonly<Record<string, Command>>
