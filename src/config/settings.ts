import { delimiter, resolve } from 'node:path'
import { LAYOUTS } from '../layout/layout.ts'
import { decodePercent } from '../core/shared/text.ts'
import { isSubnet } from '../http/request/client-address.ts'
import { parseHost, parseListenHost, parseOrigin } from '../http/request/hosts.ts'
import { isAddress, outlineOf } from '../sources/address/address.ts'
import { parseAddress } from '../sources/kinds.ts'
import { ConfigError, type Setting } from '../operator/setting.ts'

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** Kinds of values: how text is parsed, and what errors say it must be. */
const FOLDER = { parse: parsePath, mustBe: 'a folder' } as const
const FILE = { parse: parsePath, mustBe: 'a file' } as const
const ROOT = { parse: parseRoot, mustBe: 'a folder' } as const
const HOST = { parse: parseListenHost, mustBe: 'a host name or an IP address' } as const
const PORT = { parse: upTo(65_535), mustBe: 'a whole number from 0 to 65535 (0 takes any free port)' } as const
const COUNT = upTo(10 ** 15 - 1)
const POSITIVE = { parse: (text: string) => COUNT(text) || undefined, mustBe: 'a whole number above 0' } as const
/** At most an hour: no delay and no cache needs longer. */
const SECONDS = { parse: upTo(3_600), mustBe: 'a whole number of seconds up to 3600' } as const
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([['true', true], ['1', true], ['false', false], ['0', false]])
const BOOLEAN = { parse: (text: string) => BOOLEANS.get(text), mustBe: 'true, false, 1 or 0' } as const

function oneOf<Word extends string> (...words: readonly Word[]) {
  return { parse: (text: string) => words.find((word) => word === text), words, mustBe: `one of ${words.join(', ')}` }
}

/** Absolute. */
function parsePath (text: string, cwd: string): string {
  return resolve(cwd, text)
}

/** Returns a folder as an absolute path, or an address unchanged. Errors show only the host of an address. */
function parseRoot (text: string, cwd: string): string {
  if (!isAddress(text)) return resolve(cwd, text)
  try {
    parseAddress(text)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new ConfigError(`the address ${outlineOf(text)} cannot be used: ${error.message}`, { cause: error })
  }
  return text
}

/** Returns a path without a slash at its end. Refuses dot segments, and characters that need encoding. */
function parseBasePath (text: string): string | undefined {
  return /^\/(?:(?!\.{1,2}(?:\/|$))[\w.~-]+(?:\/|$))*$/.test(text) ? text.replace(/\/$/, '') : undefined
}

function upTo (max: number): (text: string) => number | undefined {
  return (text) => /^(?:0|[1-9]\d{0,14})$/.test(text) && Number(text) <= max ? Number(text) : undefined
}

/** Returns the URL without a slash at its end. */
function parseUrl (text: string): string | undefined {
  if (!/^https?:\/\/[^\s?#@"\\]+$/i.test(text) || !URL.canParse(text)) return undefined
  return new URL(text).href.replace(/\/$/, '')
}

/** Rejects a wrong percent-encoding: a `%` in a password must be `%25`. */
function parseRedis (text: string): string | undefined {
  const isRead = /^(?:redis|valkey)s?:\/\/\S+$/.test(text) && URL.canParse(text) && decodePercent(text) !== undefined
  return isRead ? text : undefined
}

/** @param more page below docs, and its heading, with details */
function setting<
  const Kind extends Pick<Setting, 'parse' | 'words' | 'mustBe'>,
  const Place extends Omit<Setting, 'parse' | 'words' | 'mustBe' | 'meaning'>
> (kind: Kind, place: Place, meaning: string, more?: string) {
  return { ...kind, ...place, meaning, ...more !== undefined && { more } }
}

/**
 * All settings of the service. The type Config, flags, environment, `--help` and the tables of README.md and
 * docs/configuration.md come from here. After a change, run `npm run tables` to update those tables.
 */
export const SETTINGS = {
  /** Project roots as absolute paths and as addresses of sources. They need not exist. */
  skillsDirs: setting(ROOT, {
    argument: 'DIR...', variable: 'SKILLS_DIR', default: './skills', separator: delimiter
  }, 'folders of skills, or addresses of sources, of which the first wins on a name clash; the variable joins ' +
    'several with the path delimiter (`:`, on Windows `;`)', 'configuration.md#folders'),
  /** The personal root as an absolute path or an address; loses to every project root. */
  personalDir: setting(ROOT, { argument: '--personal DIR', variable: 'SKILLS_PERSONAL_DIR' },
    'personal folder of skills: every other folder wins over it'),
  /** Absolute paths outside of the roots. */
  linkTargets: setting(FOLDER, { argument: '--allow-links DIR', variable: 'LINK_TARGETS', separator: delimiter },
    'folders into which links of a folder of skills may lead, besides that folder itself; may be repeated',
    'configuration.md#links'),
  configFile: setting(FILE, { argument: '--config FILE', variable: 'CONFIG_FILE' },
    'YAML or JSON file with more sources and their settings; read again at SIGHUP',
    'sources.md#configuration-file'),
  stateDir: setting(FOLDER, { argument: '--state-dir DIR', variable: 'STATE_DIR' },
    'folder for what sources fetch; by default `skillserve` in the cache folder of the user',
    'configuration.md#state-folder'),
  layout: setting(oneOf(...LAYOUTS), { argument: '--layout LAYOUT', variable: 'LAYOUT' },
    'where skills lie: `flat` (default for folders), `single`, `tree`, `marketplace` or `auto` ' +
    '(default for other sources)', 'sources.md#layouts'),
  host: setting(HOST, { argument: '--host HOST', variable: 'HOST', default: '127.0.0.1' },
    'name or address to listen on; the image sets `0.0.0.0`'),
  port: setting(PORT, { argument: '--port PORT', variable: 'PORT', default: '8080' },
    '0 to 65535; `0` takes any free port, the log says which'),
  /** Empty, or with a slash at the beginning and none at the end. */
  basePath: setting({ parse: parseBasePath, mustBe: 'a path such as /skillserve' }, {
    argument: '--base-path PATH', variable: 'BASE_PATH', default: '/'
  }, 'path prefix of all routes', 'configuration.md#base-path'),
  ui: setting(BOOLEAN, { variable: 'UI', default: 'true' }, 'pages for people at `/`; `false` serves none', 'pages.md'),
  logLevel: setting(oneOf(...LOG_LEVELS), {
    argument: '--log-level LEVEL', variable: 'LOG_LEVEL', default: 'info'
  }, '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`'),
  /** Default: pretty on a terminal, otherwise JSON. */
  logFormat: setting(oneOf('pretty', 'json'), { argument: '--log-format FORMAT', variable: 'LOG_FORMAT' },
    '`pretty` or `json`; without it pretty on a terminal, JSON otherwise'),
  metricsPort: setting(PORT, { argument: '--metrics-port PORT', variable: 'METRICS_PORT' },
    'separate port for Prometheus: `GET /metrics`; without it none', 'operations.md#metrics'),
  metricsHost: setting(HOST, { variable: 'METRICS_HOST', default: '127.0.0.1' },
    'name or address that `METRICS_PORT` listens on', 'operations.md#metrics'),
  metricsReads: setting(BOOLEAN, { variable: 'METRICS_READS', default: 'false' },
    '`true` counts reads by skill in the metrics, which then contain names of skills', 'operations.md#metrics'),
  /** `stdout`, or an absolute path. */
  auditLog: setting({
    parse: (text: string, cwd: string) => text === 'stdout' ? text : resolve(cwd, text), mustBe: 'a file, or stdout'
  }, { variable: 'AUDIT_LOG' },
  'file, or `stdout`, for one JSON line per read: who, what, which revision', 'operations.md#audit-log'),
  auditSalt: setting({
    parse: (text: string) => text.length >= 16 ? text : undefined, mustBe: 'a text of at least 16 characters'
  }, { variable: 'AUDIT_SALT', isSecret: true },
  'a secret: the audit log then has HMACs instead of names and addresses of callers', 'operations.md#audit-log'),
  auditRequired: setting(BOOLEAN, { variable: 'AUDIT_REQUIRED', default: 'false' },
    '`true` refuses reads while the audit log cannot be written', 'operations.md#audit-log'),
  limits: setting(oneOf('auto', 'on', 'off'), { variable: 'LIMITS', default: 'auto' },
    'limits for each caller, `auto`, `on` or `off`; `auto` turns limits off only on a loopback address without an ' +
    'access file', 'operations.md#limits-of-callers'),
  limitRate: setting(POSITIVE, { variable: 'LIMIT_RATE', default: '100' },
    'units that each caller may use per second on average; a request or a tool call is one',
    'operations.md#limits-of-callers'),
  limitBurst: setting(POSITIVE, { variable: 'LIMIT_BURST' },
    'units that a caller may use at once; without it 2,000', 'operations.md#limits-of-callers'),
  limitsStore: setting({
    parse: parseRedis, mustBe: 'an address such as redis://127.0.0.1:6379'
  }, { variable: 'LIMITS_STORE', isSecret: true },
  'Redis or Valkey in which several replicas share the limits; needs the package `ioredis`',
  'operations.md#limits-of-callers'),
  /** Addresses and subnets. */
  trustedProxies: setting({
    parse: (text: string) => isSubnet(text.trim()) ? text.trim() : undefined,
    mustBe: 'an address, or one with the length of its prefix such as 10.0.0.0/8'
  }, { variable: 'TRUSTED_PROXIES', separator: ',' },
  'proxies whose `X-Forwarded-For` names the client, joined by commas; without it the header is ignored',
  'operations.md#limits-of-callers'),
  /** Lower-case names and addresses, without port and brackets. */
  allowedHosts: setting({ parse: (text: string) => parseHost(text.trim()), mustBe: HOST.mustBe }, {
    variable: 'ALLOWED_HOSTS', separator: ','
  }, 'host names the service answers to, joined by commas; unset: all names, or only loopback names when it listens ' +
    'on loopback', 'configuration.md#hosts'),
  /** Origins as browsers write them: `https://app.example`, no default port. */
  allowedOrigins: setting({
    parse: (text: string) => parseOrigin(text.trim()), mustBe: 'an origin such as https://app.example'
  }, { variable: 'ALLOWED_ORIGINS', separator: ',' },
  'origins of web pages that may use the service (CORS), joined by commas; without it none',
  'configuration.md#origins'),
  accessFile: setting(FILE, { argument: '--access FILE', variable: 'ACCESS_FILE' },
    'who may see what (YAML): tokens, issuers, groups, rules; without it everybody sees everything', 'access.md'),
  /** Without a slash at the end. */
  publicUrl: setting({ parse: parseUrl, mustBe: 'a URL such as https://skills.example, without query' }, {
    variable: 'PUBLIC_URL'
  }, 'address of the service as its users type it, base path included; for OAuth clients', 'access.md'),
  watchPolling: setting(BOOLEAN, { variable: 'WATCH_POLLING', default: 'false' },
    '`true` compares everything each second, where the system sends no change events', 'configuration.md#watching'),
  shutdownDelay: setting(SECONDS, { variable: 'SHUTDOWN_DELAY', default: '0' },
    'seconds after SIGTERM in which the service is not ready but still serves, up to 3600', 'operations.md#stopping'),
  cacheSeconds: setting(SECONDS, { variable: 'CACHE_SECONDS', default: '0' },
    'seconds for which shared caches (CDN) may answer without asking, up to 3600; `0`: never', 'operations.md#caches'),
  keepRevisionSeconds: setting({
    parse: upTo(1_209_600), mustBe: 'a whole number of seconds up to 1209600 (two weeks)'
  }, { variable: 'REVISION_KEEP_SECONDS', default: '600' },
  'seconds for which a revision stays readable after its last use, up to two weeks; `0` keeps none',
  'rest.md#kept-revisions'),
  keepRevisionBytes: setting({ parse: COUNT, mustBe: 'a whole number of bytes' }, {
    variable: 'REVISION_KEEP_BYTES', default: '67108864'
  }, 'memory for all kept revisions, in bytes; the least recently used go first; `0` keeps none',
  'rest.md#kept-revisions'),
  lockFile: setting(FILE, { argument: '--locked [FILE]', variable: 'LOCKED', alone: 'skills.lock' },
    'serve only the revisions that this file names (`skillserve lock` writes it); the flag alone means `skills.lock`',
    'trust.md'),
  trustFile: setting(FILE, { argument: '--trust FILE', variable: 'TRUST_FILE' },
    'whose signatures count, and which folders require them', 'trust.md')
} as const satisfies Readonly<Record<string, Setting>>

export type SettingName = keyof typeof SETTINGS
type Parsed<Row extends Setting> = Exclude<ReturnType<Row['parse']>, undefined>
type ValueOf<Row extends Setting> = Row extends { readonly separator: string }
  ? readonly Parsed<Row>[]
  : Parsed<Row> | (Row extends { readonly default: string } ? never : undefined)

export type Config = { readonly [Name in SettingName]: ValueOf<(typeof SETTINGS)[Name]> }
