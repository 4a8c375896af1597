import { ConfigError, quote } from '../config/setting.ts'
import { parseArguments } from './arguments.ts'
import { type Arguments, type CommandContext, CommandError, type CommandTable, DEFAULT_COMMAND, loadCommand } from './command.ts'
import { COMMANDS } from './commands.ts'
import { checkSkillsFolder } from './folders/check-folder.ts'

/**
 * Runs what the arguments behind the script's name ask for. A failure that the caller can mend is one line.
 * @param printError writes to standard error
 * @returns the exit code, or undefined while the process goes on by itself
 */
export async function runCommandLine (
  argv: readonly string[], { cwd, ...context }: Omit<CommandContext, 'commands' | 'warn' | 'cwd'> & { readonly cwd: string | undefined }, printError: (text: string) => void
): Promise<number | undefined> {
  const warn = (sentence: string): void => { printError(`skillserve: ${sentence}\n`) }
  try {
    if (cwd === undefined) throw new CommandError('the working folder is not there any more: change to another one')
    return await dispatch(argv, { ...context, cwd, commands: COMMANDS, warn })
  } catch (error) {
    if (!(error instanceof CommandError || error instanceof ConfigError)) throw error
    warn(error.message)
    return error instanceof CommandError ? error.exitCode ?? await misuseOf(argv) : 1
  }
}

/** Scripts tell wrong use of some commands from what those commands find. */
async function misuseOf ([first = '']: readonly string[]): Promise<number> {
  return (await loadCommand(first, COMMANDS))?.misuse ?? 1
}

async function dispatch (argv: readonly string[], context: CommandContext): Promise<number | undefined> {
  const { commands, cwd } = context
  const [first = '', ...rest] = argv
  const named = Object.hasOwn(commands, first) ? first : undefined
  // Before the flags are read: those of a mistyped command would be refused first, as unknown ones of `serve`. A skill in the place of a folder is the business of the command.
  if (named === undefined && first !== '' && !first.startsWith('-')) await checkSkillsFolder(first, cwd, commands, 'auto')

  const command = await loadCommand(named ?? DEFAULT_COMMAND, commands)
  if (command === undefined) throw new Error(`the command ${DEFAULT_COMMAND} is missing`)
  const args = parseArguments(named === undefined ? argv : rest, command.flags, command.switches, command.optionalFlags)
  if (args.flags.has('help')) return await dispatch(named === undefined ? ['help'] : ['help', named], context)
  if (args.flags.has('version')) return await dispatch(['version'], context)

  // What a shell makes of "$DIR" without a value would be the working folder. `serve` says what its DIR must be.
  if (named !== undefined && args.positionals.includes('')) throw new CommandError(`${first} has an empty argument`)
  const [unwanted] = args.positionals
  if (command.positionals === undefined && unwanted !== undefined) throw new CommandError(`${first} takes no argument, not ${quote(unwanted)}`)
  return await command.run(named === undefined ? withoutCommand(args, commands) : args, context)
}

/** `--port 80 serve DIR`: the name of the default command may come behind flags, that of any other may not. */
function withoutCommand ({ positionals, flags }: Arguments, commands: CommandTable): Arguments {
  const [word = '', ...others] = positionals
  if (word === DEFAULT_COMMAND) return { positionals: others, flags }
  if (Object.hasOwn(commands, word)) throw new CommandError(`${word} comes before its flags: skillserve ${word} …`)
  return { positionals, flags }
}
