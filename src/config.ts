import { isIP } from 'node:net'
import { delimiter, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type Static, Type } from '@sinclair/typebox'

const MAX_PORT = 65_535

/** The settings of a process. A property's description completes the sentence "PORT must be …". */
export const ConfigSchema = Type.Object({
  /** Project roots as absolute paths, the earlier wins. They need not exist. */
  skillsDirs: Type.Readonly(Type.Unsafe<readonly string[]>(Type.Array(Type.String({ minLength: 1 }), {
    minItems: 1,
    description: `a folder or several joined by "${delimiter}", none of them empty`
  }))),
  /** The personal root as an absolute path; loses to every project root. */
  personalDir: Type.ReadonlyOptional(Type.String({ minLength: 1, description: 'a folder' })),
  host: Type.Readonly(Type.String({ minLength: 1, description: 'a host name or an IP address' })),
  port: Type.Readonly(Type.Integer({
    minimum: 0,
    maximum: MAX_PORT,
    description: `a whole number from 0 to ${MAX_PORT} (0 takes any free port)`
  })),
  logLevel: Type.Readonly(Type.Union(
    [
      Type.Literal('trace'), Type.Literal('debug'), Type.Literal('info'), Type.Literal('warn'),
      Type.Literal('error'), Type.Literal('fatal'), Type.Literal('silent')
    ],
    { description: 'trace, debug, info, warn, error, fatal or silent' }
  )),
  /** Lower-case names and addresses, without port and brackets. Absent: nobody said which. */
  allowedHosts: Type.ReadonlyOptional(Type.Unsafe<readonly string[]>(Type.Array(Type.String({ minLength: 1 }), {
    minItems: 1,
    description: 'host names or IP addresses joined by ",", none of them empty'
  }))),
  /** Origins as browsers write them: `https://app.example`, no default port. Absent: loopback ones, on a loopback address. */
  allowedOrigins: Type.ReadonlyOptional(Type.Unsafe<readonly string[]>(Type.Array(Type.String({ minLength: 1 }), {
    minItems: 1,
    description: 'origins such as https://app.example joined by ","'
  }))),
  /** Watch by polling instead of by the operating system's events. */
  watchPolling: Type.Readonly(Type.Boolean({ description: 'true, false, 1 or 0' }))
}, { $id: 'Config' })

export type Config = Static<typeof ConfigSchema>

/** A setting that cannot be used. The message is one line: the flag or the variable, and what it may be. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

const FLAGS = {
  personal: { type: 'string' },
  host: { type: 'string' },
  port: { type: 'string' },
  'log-level': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' }
} as const

type Flag = keyof typeof FLAGS

/** What the arguments say, values not yet checked. */
export interface CommandLine {
  readonly dirs: readonly string[]
  readonly flags: ReadonlyMap<Flag, string>
}

/**
 * Reads flags and folders; `serve`, the default subcommand, may come before the folders (a folder of that name is `./serve`).
 * Of a repeated flag the last counts. A value that begins with `--` is given as `--flag=--value`.
 * @throws ConfigError for a flag that is unknown, lacks its value or has one too many, and for an empty folder.
 */
export function parseCommandLine (argv: readonly string[]): CommandLine {
  // Not strict: parseArgs' own refusals are several sentences long and name no alternatives.
  const { tokens } = parseArgs({ args: [...argv], options: FLAGS, allowPositionals: true, strict: false, tokens: true })
  const flags = new Map<Flag, string>()
  const dirs: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') dirs.push(parseDir(token.value))
    if (token.kind !== 'option') continue
    const { name, rawName, value = '', inlineValue } = token
    if (!isFlag(name)) {
      const known = Object.keys(FLAGS).map((flag) => `--${flag}`).join(', ')
      throw new ConfigError(`${quote(rawName)} is not a flag, there are ${known}`)
    }
    if (FLAGS[name].type === 'boolean' && inlineValue) throw new ConfigError(`${rawName} takes no value, not ${quote(value)}`)
    if (FLAGS[name].type === 'string' && !inlineValue && (token.value === undefined || value.startsWith('--'))) {
      throw new ConfigError(`${rawName} needs a value`)
    }
    flags.set(name, value)
  }
  if (dirs[0] === 'serve') dirs.shift()
  return { dirs, flags }
}

/** A value as somebody wrote it, and where. */
interface Given {
  readonly from: string
  readonly text: string
}

/**
 * The settings: flags beat the environment, the environment beats defaults. The only reader of the environment.
 * An empty variable counts as unset, because compose files pass on `NAME=` for what nobody set; an empty flag is an error.
 * @param argv the arguments after the script's name
 * @param cwd what relative folders are relative to
 * @throws ConfigError
 */
export function loadConfig ({ argv, env, cwd }: {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
}): Config {
  const { dirs, flags } = parseCommandLine(argv)

  function given (variable: string, flag?: Flag): Given | undefined {
    const value = flag === undefined ? undefined : flags.get(flag)
    if (value !== undefined) return { from: `--${flag}`, text: value }
    const text = env[variable]
    return text ? { from: variable, text } : undefined
  }

  const roots = dirs.length > 0
    ? dirs
    : checked('skillsDirs', given('SKILLS_DIR'), parseFolders)
  const personal = checked('personalDir', given('SKILLS_PERSONAL_DIR', 'personal'), (text) => text || undefined)
  const allowedHosts = checked('allowedHosts', given('ALLOWED_HOSTS'), parseHosts)
  const allowedOrigins = checked('allowedOrigins', given('ALLOWED_ORIGINS'), parseOrigins)

  return {
    skillsDirs: [...new Set((roots ?? ['skills']).map((dir) => resolve(cwd, dir)))],
    ...personal !== undefined && { personalDir: resolve(cwd, personal) },
    host: checked('host', given('HOST', 'host'), (text) => isHost(text) ? text : undefined) ?? '127.0.0.1',
    port: checked('port', given('PORT', 'port'), parsePort) ?? 8080,
    logLevel: checked('logLevel', given('LOG_LEVEL', 'log-level'), parseLogLevel) ?? 'info',
    ...allowedHosts && { allowedHosts },
    ...allowedOrigins && { allowedOrigins },
    watchPolling: checked('watchPolling', given('WATCH_POLLING'), (text) => BOOLEANS.get(text)) ?? false
  }
}

/** The value that the text stands for; undefined only when nothing was given. Throws ConfigError if `parse` finds none. */
function checked<Value> (
  setting: keyof Config, given: Given | undefined, parse: (text: string) => Value | undefined
): Value | undefined {
  if (given === undefined) return undefined
  const value = parse(given.text)
  if (value !== undefined) return value
  throw new ConfigError(`${given.from} must be ${ConfigSchema.properties[setting].description}, not ${quote(given.text)}`)
}

function isFlag (name: string): name is Flag {
  return Object.hasOwn(FLAGS, name)
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([['true', true], ['1', true], ['false', false], ['0', false]])

function parseDir (text: string): string {
  if (text === '') throw new ConfigError('DIR must be a folder, not ""')
  return text
}

function parseFolders (text: string): readonly string[] | undefined {
  const folders = text.split(delimiter)
  return folders.includes('') ? undefined : folders
}

const WHOLE_NUMBER = /^(?:0|[1-9]\d{0,4})$/

function parsePort (text: string): number | undefined {
  return WHOLE_NUMBER.test(text) && Number(text) <= MAX_PORT ? Number(text) : undefined
}

function parseLogLevel (text: string): Config['logLevel'] | undefined {
  return ConfigSchema.properties.logLevel.anyOf.find((level) => level.const === text)?.const
}

const MAX_HOST_CHARACTERS = 253
const HOST_LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i
const DIGITS = /^\d+$/

/** An address as node:net reads it, or a name that cannot be taken for an IPv4 address ("256.1.1.1", "127.1"). */
function isHost (text: string): boolean {
  if (isIP(text) !== 0) return true
  const labels = text.split('.')
  return text.length <= MAX_HOST_CHARACTERS && labels.every((label) => HOST_LABEL.test(label)) && !DIGITS.test(labels.at(-1) ?? '')
}

const BRACKETED_HOST = /^\[([\da-f:.]*:[\da-f:.]*)\](?::\d{1,5})?$/
const HOST_AND_PORT = /^([^:]*):\d{1,5}$/

/** Splits at commas, drops ports and case: `Example.org:8080` → `example.org`, `[::1]:80` and `::1` → `::1`. */
function parseHosts (text: string): readonly string[] | undefined {
  const hosts = text.toLowerCase().split(',').map((entry) => {
    const host = entry.trim()
    return BRACKETED_HOST.exec(host)?.[1] ?? HOST_AND_PORT.exec(host)?.[1] ?? host
  })
  return hosts.every(isHost) ? hosts : undefined
}

const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^\s/?#@\\]+$/

/** As a browser would send them. Other schemes than http are those of extensions: `chrome-extension://<id>`. */
function parseOrigins (text: string): readonly string[] | undefined {
  const origins = text.toLowerCase().split(',').map((entry) => parseOrigin(entry.trim()))
  return origins.every((origin) => origin !== undefined) ? origins : undefined
}

function parseOrigin (text: string): string | undefined {
  if (!ORIGIN.test(text) || !URL.canParse(text)) return undefined
  const { origin } = new URL(text)
  return origin === 'null' ? text : origin
}

const MAX_QUOTED_CHARACTERS = 80

/** What somebody wrote, on one line whatever is in it. */
function quote (text: string): string {
  return JSON.stringify(text.length > MAX_QUOTED_CHARACTERS ? `${text.slice(0, MAX_QUOTED_CHARACTERS)}…` : text)
}
