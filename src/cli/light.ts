import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import { parseArgs } from 'node:util'
import type { Environment } from '../operator/setting.ts'

const VERSION = ['version', '--version', '-v']
const FLAGS = { host: { type: 'string' }, port: { type: 'string' }, 'base-path': { type: 'string' } } as const

/** Returns whether a command line is for `serve`, which needs no word of its own. */
export function isServe ([word = '']: readonly string[]): boolean {
  if (word === 'serve' || !/^[a-z]+$/.test(word)) return true
  const file = new URL(`commands/${word}${extname(import.meta.url)}`, import.meta.url)
  return word !== 'help' && word !== 'version' && !existsSync(file)
}

/**
 * Runs `version` and `healthcheck` without the modules of other commands: orchestrators check every few seconds.
 * @returns the exit code; undefined if the whole command line is needed
 */
export async function runLight (
  [command = '', ...args]: readonly string[], env: Environment,
  print: (text: string) => void, printError: (text: string) => void
): Promise<number | undefined> {
  if (VERSION.includes(command) && args.length === 0) {
    const { versionText } = await import('../operator/package-files.ts')
    print(`${versionText()}\n`)
    return 0
  }
  const flags = command === 'healthcheck' ? readFlags(args) : undefined
  if (flags === undefined) return undefined
  const { checkReadiness } = await import('./commands/healthcheck.ts')
  try {
    await checkReadiness(flags, env)
    return 0
  } catch (error) {
    printError(`skillserve: ${(error as Error).message}\n`)
    return 1
  }
}

/** Returns the flags of `healthcheck`; undefined for other arguments, which need the full parser. */
function readFlags (args: readonly string[]) {
  try {
    const { host, port, 'base-path': basePath } = parseArgs({ args: [...args], options: FLAGS }).values
    return { host, port, basePath }
  } catch {
    return undefined
  }
}
