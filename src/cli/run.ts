import { CommanderError } from 'commander'
import { ConfigError } from '../operator/setting.ts'
import type { CommandContext } from './command.ts'
import { isServe } from './light.ts'
import { createProgram } from './program.ts'

/**
 * Runs the command line. Reports an error that the caller can fix in one line.
 * @param printError writes to standard error
 * @returns the exit code, or undefined if the process keeps running
 */
export async function runCommandLine (
  argv: readonly string[], context: Omit<CommandContext, 'commands' | 'warn'>, printError: (text: string) => void
): Promise<number | undefined> {
  const warn = (sentence: string): void => { printError(`skillserve: ${sentence}\n`) }
  let code: number | undefined = 0
  const program = createProgram(context.print, async (run, args) => {
    // An empty argument, such as an unset variable in quotes, would mean the working folder.
    if (args.positionals.includes('')) throw new ConfigError('an argument is empty')
    code = await run(args, { ...context, warn, commands: program.commands.map((command) => command.name()) })
  })
  try {
    await program.parseAsync(argv, { from: 'user' })
    return code
  } catch (error) {
    // Wrong use has an exit code of its own, so that scripts can tell it from findings. Any failed start is 1.
    const isWrongUse = error instanceof CommanderError && !isServe(argv)
    const isValidate = argv[0] === 'validate'
    const isExpected = error instanceof CommanderError || error instanceof ConfigError
    if (!isExpected && !isValidate) throw error
    if (error instanceof CommanderError && error.exitCode === 0) return 0
    warn((error as Error).message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' '))
    return !isExpected ? 3 : isValidate || isWrongUse ? 2 : 1
  }
}
