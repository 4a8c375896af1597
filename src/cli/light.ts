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
  const service = command === 'healthcheck' ? readService(args, env) : undefined
  if (service === undefined) return undefined
  const { checkReadiness } = await import('./commands/healthcheck.ts')
  try {
    await checkReadiness(service)
    return 0
  } catch (error) {
    printError(`skillserve: ${(error as Error).message}\n`)
    return 1
  }
}

/** Returns where the service listens; undefined if the settings need the full parser. */
function readService (args: readonly string[], env: Environment) {
  let flags: Partial<Record<keyof typeof FLAGS, string>>
  try {
    flags = parseArgs({ args: [...args], options: FLAGS }).values
  } catch {
    return undefined
  }
  const host = flags.host ?? (env['HOST'] || '127.0.0.1')
  const port = flags.port ?? (env['PORT'] || '8080')
  const basePath = (flags['base-path'] ?? (env['BASE_PATH'] || '/')).replace(/\/$/, '')
  const [allowedHost] = env['ALLOWED_HOSTS'] ? env['ALLOWED_HOSTS'].split(',') : []
  const isPlain = /^[a-z\d][a-z\d.-]*$/.test(host) && /^[1-9]\d{0,4}$/.test(port) && Number(port) < 65_536 &&
    /^(?:\/[\w-]+)*$/.test(basePath) && /^[a-z\d.-]+$/.test(allowedHost ?? host)
  if (!isPlain) return undefined
  return { host, port: Number(port), basePath, allowedHosts: allowedHost === undefined ? undefined : [allowedHost] }
}
