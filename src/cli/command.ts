import { didYouMean, type Environment } from '../config/setting.ts'

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

/** A command's arguments, values not yet checked. */
export interface Arguments {
  readonly positionals: readonly string[]
  /** Values by name without dashes, in order; switches have none. */
  readonly flags: ReadonlyMap<string, readonly string[]>
}

/** What a command has of the process. */
export interface CommandContext {
  readonly commands: CommandTable
  readonly env: Environment
  readonly cwd: string
  /** Writes to standard output. */
  readonly print: (text: string) => void
  /** Writes a line to standard error that changes no exit code. */
  readonly warn: (sentence: string) => void
  /** Says to a person at a terminal how far the command is. The line goes with the next output. */
  readonly progress?: (text: string) => void
  /** With which exit code SIGINT and SIGTERM end the process from now on; undefined: the command handles them. At first it is that of a shell. */
  readonly endBySignal?: (code: number | undefined) => void
  /** Whether a person reads standard output. */
  readonly isTerminal?: boolean
}

/** The command of a command line that names none. */
export const DEFAULT_COMMAND = 'serve'

/** A command, in a file of its own. `help` and `completion` load all of them: what is large, `run` imports. */
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
  /** Words that its argument may be, for completion. Absent: paths. */
  readonly words?: readonly string[]
  /** Values of flags, for completion. */
  readonly choices?: Readonly<Record<string, readonly string[]>>
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

/** All commands by name, in the order of `help`, each with what loads it. */
export type CommandTable = Readonly<Record<string, () => Promise<{ readonly command: Command }>>>

/** A command by its name, loaded; undefined for any other word. */
export async function loadCommand (name: string, commands: CommandTable): Promise<Command | undefined> {
  return Object.hasOwn(commands, name) ? (await commands[name]?.())?.command : undefined
}

/** All commands, loaded. */
export async function loadCommands (commands: CommandTable): Promise<ReadonlyArray<readonly [name: string, command: Command]>> {
  return await Promise.all(Object.entries(commands).map(async ([name, load]) => [name, (await load()).command] as const))
}

/** What to say behind an unknown command: the nearest one, and all there are. */
export function commandHint (word: string, commands: CommandTable): string {
  const names = Object.keys(commands)
  return `${didYouMean(word, names)} (commands: ${names.join(', ')})`
}
