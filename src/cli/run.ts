import { CommanderError } from 'commander'
import { ConfigError } from '../config/setting.ts'
import { type CommandContext, CommandError } from './command.ts'
import { checkSkillsFolder } from './folders.ts'
import { createProgram } from './program.ts'

/** Scripts tell wrong use of this command from what it finds. */
const MISUSE: ReadonlyMap<string, number> = new Map([['validate', 2]])

type Process = Omit<CommandContext, 'commands' | 'warn'>

/**
 * Runs what the arguments behind the name of the script ask for. A failure that the caller can fix is one line.
 * @param printError writes to standard error
 * @returns the exit code, or undefined while the process goes on by itself
 */
export async function runCommandLine (
  argv: readonly string[], context: Process, printError: (text: string) => void
): Promise<number | undefined> {
  const warn = (sentence: string): void => { printError(`skillserve: ${sentence}\n`) }
  const misuse = MISUSE.get(argv[0] ?? '') ?? 1
  try {
    return await dispatch(argv, context, warn)
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0
      warn(error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' '))
      return misuse
    }
    if (!(error instanceof CommandError || error instanceof ConfigError)) throw error
    warn(error.message)
    return error instanceof CommandError ? error.exitCode ?? misuse : 1
  }
}

async function dispatch (
  argv: readonly string[], context: Process, warn: CommandContext['warn']
): Promise<number | undefined> {
  let code: number | undefined = 0
  const program = createProgram(context.print, async (run, args) => {
    // An unset variable in quotes would stand for the working folder.
    if (args.positionals.includes('')) throw new CommandError('an argument is empty')
    code = await run(args, { ...context, warn, commands })
  })
  const commands = program.commands.map((command) => command.name())
  const [first = ''] = argv
  // Before the flags are read: those of a mistyped command would be reported first.
  const isFolder = first !== '' && !first.startsWith('-') && !commands.includes(first)
  if (isFolder) await checkSkillsFolder(first, context.cwd, commands, 'auto')
  await program.parseAsync(argv, { from: 'user' })
  return code
}
