import { delimiter, resolve } from 'node:path'
import { isHost, parseHost, parseOrigin } from './http/hosts.ts'

/** What keeps the service from starting and its operator can mend. The message is one line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** One setting: where it comes from, how its text is read, and what people read about it. */
export interface Setting {
  /** The flag with its value (`--port PORT`), or `DIR...` for the arguments that are no flags. Absent: environment only. */
  readonly argument?: string
  readonly variable: string
  /** Read like any other text. Absent: the setting is undefined unless somebody sets it. */
  readonly default?: string
  /** For a setting of several values: what joins them in the variable. Arguments and flags hold one value each. */
  readonly separator?: string
  /** The value that a text stands for, undefined for a text that stands for none. Relative folders start at `cwd`. */
  readonly parse: (text: string, cwd: string) => unknown
  /** Completes the sentence "PORT must be …". */
  readonly mustBe: string
  /** For `--help` and the documents, where it is Markdown. */
  readonly meaning: string
  /** The heading in docs/configuration.md that says more. */
  readonly section?: string
}

const MAX_PORT = 65_535
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([['true', true], ['1', true], ['false', false], ['0', false]])

/**
 * Every setting of the service: the type Config, flags, environment, `--help` and the tables of README.md and
 * docs/configuration.md come from here. After a change, `npm run tables` writes those tables anew.
 */
export const SETTINGS = {
  /** Project roots as absolute paths, the earlier wins. They need not exist. */
  skillsDirs: {
    argument: 'DIR...',
    variable: 'SKILLS_DIR',
    default: './skills',
    separator: delimiter,
    parse: parseFolder,
    mustBe: 'a folder',
    meaning: 'folders of skills, the earlier wins; the variable joins several with the path delimiter (`:`, on Windows `;`)',
    section: 'folders'
  },
  /** The personal root as an absolute path; loses to every project root. */
  personalDir: {
    argument: '--personal DIR',
    variable: 'SKILLS_PERSONAL_DIR',
    parse: parseFolder,
    mustBe: 'a folder',
    meaning: 'personal folder of skills, loses to all of those'
  },
  host: {
    argument: '--host HOST',
    variable: 'HOST',
    default: '127.0.0.1',
    parse: (text) => isHost(text) ? text : undefined,
    mustBe: 'a host name or an IP address',
    meaning: 'name or address to listen on; the image sets `0.0.0.0`'
  },
  port: {
    argument: '--port PORT',
    variable: 'PORT',
    default: '8080',
    parse: parsePort,
    mustBe: `a whole number from 0 to ${MAX_PORT} (0 takes any free port)`,
    meaning: `0 to ${MAX_PORT}; \`0\` takes any free port, the log says which`
  },
  /** Empty, or with a slash at the beginning and none at the end. */
  basePath: {
    argument: '--base-path PATH',
    variable: 'BASE_PATH',
    default: '/',
    parse: parsePath,
    mustBe: 'a path such as /skillserve',
    meaning: 'path prefix below which everything is served',
    section: 'base-path'
  },
  logLevel: {
    argument: '--log-level LEVEL',
    variable: 'LOG_LEVEL',
    default: 'info',
    parse: (text) => LOG_LEVELS.find((level) => level === text),
    mustBe: 'trace, debug, info, warn, error, fatal or silent',
    meaning: '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`'
  },
  /** Lower-case names and addresses, without port and brackets. */
  allowedHosts: {
    variable: 'ALLOWED_HOSTS',
    separator: ',',
    parse: (text) => parseHost(text.trim()),
    mustBe: 'a host name or an IP address',
    meaning: 'names in `Host` to answer to, joined by commas; without it all, but on a loopback address only loopback names',
    section: 'hosts'
  },
  /** Origins as browsers write them: `https://app.example`, no default port. */
  allowedOrigins: {
    variable: 'ALLOWED_ORIGINS',
    separator: ',',
    parse: (text) => parseOrigin(text.trim()),
    mustBe: 'an origin such as https://app.example',
    meaning: 'origins of web pages that may use the service (CORS), joined by commas; without it none',
    section: 'origins'
  },
  /** Watch by polling instead of by the operating system's events. */
  watchPolling: {
    variable: 'WATCH_POLLING',
    default: 'false',
    parse: (text) => BOOLEANS.get(text),
    mustBe: 'true, false, 1 or 0',
    meaning: '`true` where the system sends no change events',
    section: 'watching'
  },
  keepRevisionSeconds: {
    variable: 'REVISION_KEEP_SECONDS',
    default: '600',
    parse: parseCount,
    mustBe: 'a whole number of seconds',
    meaning: 'how long a revision that was handed out stays readable after a change, in seconds; `0` keeps none',
    section: 'kept-revisions'
  },
  keepRevisionBytes: {
    variable: 'REVISION_KEEP_BYTES',
    default: '67108864',
    parse: parseCount,
    mustBe: 'a whole number of bytes',
    meaning: 'most bytes of all kept revisions together, the oldest go first; `0` keeps none',
    section: 'kept-revisions'
  }
} as const satisfies Readonly<Record<string, Setting>>

type SettingName = keyof typeof SETTINGS
type Parsed<Row extends Setting> = Exclude<ReturnType<Row['parse']>, undefined>
type ValueOf<Row extends Setting> =
  (Row extends { readonly separator: string } ? readonly Parsed<Row>[] : Parsed<Row>) | (Row extends { readonly default: string } ? never : undefined)

/** The settings of a process. */
export type Config = { readonly [Name in SettingName]: ValueOf<(typeof SETTINGS)[Name]> }

/** What the sources of settings hold, unread. */
export interface ConfigSources {
  /** Arguments that are no flags. */
  readonly positionals: readonly string[]
  /** The values of flags by name without dashes, in the order of the command line. */
  readonly flags: ReadonlyMap<string, readonly string[]>
  readonly env: Readonly<Record<string, string | undefined>>
  /** What relative folders are relative to. */
  readonly cwd: string
  /** Texts that stand in for the defaults of the table. */
  readonly defaults?: Readonly<Partial<Record<SettingName, string>>>
}

/**
 * Flags beat the environment, the environment beats defaults. Of a repeated flag of one value the last counts. An empty
 * variable counts as unset, because compose files pass on `NAME=` for what nobody set; an empty argument is an error.
 * @throws ConfigError for a value that cannot be used
 */
export function loadConfig ({ defaults = {}, ...sources }: ConfigSources): Config {
  const rows: readonly (readonly [string, Setting])[] = Object.entries(SETTINGS)
  // Each value is what its row's `parse` returned; no type says so of all rows at once.
  return Object.fromEntries(rows.map(([name, row]) => [name, valueOf(row, sources, defaults[name as SettingName])])) as Config
}

/** The names of all flags, without dashes. */
export function settingFlags (): string[] {
  return Object.values<Setting>(SETTINGS).map(flagOf).filter((flag) => flag !== undefined)
}

function flagOf ({ argument }: Setting): string | undefined {
  return /^--(\S+)/.exec(argument ?? '')?.[1]
}

function valueOf (row: Setting, sources: Omit<ConfigSources, 'defaults'>, fallback = row.default): unknown {
  const { from, mustBe, texts } = textsOf(row, sources, fallback)
  const values = texts.map((text) => {
    const value = row.parse(text, sources.cwd)
    if (value === undefined) throw new ConfigError(`${from} must be ${mustBe}, not ${quote(text)}`)
    return value
  })
  if (row.separator === undefined || values.length === 0) return values[0]
  return [...new Set(values)]
}

/** The texts of a setting: arguments, else the environment, else the default. */
function textsOf (row: Setting, { positionals, flags, env }: Omit<ConfigSources, 'defaults'>, fallback: string | undefined) {
  const { argument, variable, separator, mustBe } = row
  const flag = flagOf(row)
  const given = (flag === undefined ? argument && positionals : flags.get(flag)) || []
  if (given.length > 0) return { from: flag === undefined ? 'DIR' : `--${flag}`, mustBe, texts: separator === undefined ? given.slice(-1) : given }
  const text = env[variable]
  if (!text) return { from: variable, mustBe, texts: fallback === undefined ? [] : [fallback] }
  if (separator === undefined) return { from: variable, mustBe, texts: [text] }
  return { from: variable, mustBe: `${mustBe}, or several joined by "${separator}", none of them empty`, texts: text.split(separator) }
}

function parseFolder (text: string, cwd: string): string | undefined {
  return text === '' ? undefined : resolve(cwd, text)
}

/** Segments of characters that nobody encodes, no dot segments. */
const PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)*\/?$/

/** Without the slash at the end, which `/` is too. */
function parsePath (text: string): string | undefined {
  return text.startsWith('/') && PATH.test(text) ? text.replace(/\/$/, '') : undefined
}

const WHOLE_NUMBER = /^(?:0|[1-9]\d{0,4})$/

/** Up to fifteen digits, which a number holds exactly. */
function parseCount (text: string): number | undefined {
  return /^(?:0|[1-9]\d{0,14})$/.test(text) ? Number(text) : undefined
}

function parsePort (text: string): number | undefined {
  return WHOLE_NUMBER.test(text) && Number(text) <= MAX_PORT ? Number(text) : undefined
}

const MAX_QUOTED_CHARACTERS = 80

/** A text of somebody's, on one line whatever is in it. */
export function quote (text: string): string {
  return JSON.stringify(text.length > MAX_QUOTED_CHARACTERS ? `${text.slice(0, MAX_QUOTED_CHARACTERS)}…` : text)
}
