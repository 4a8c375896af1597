import { delimiter, resolve } from 'node:path'
import { LAYOUTS } from '../core/layout/layout.ts'
import { isSubnet } from '../http/request/client-address.ts'
import { parseHost, parseListenHost, parseOrigin } from '../http/request/hosts.ts'
import { splitRoots } from '../sources/address/address.ts'
import { parseCount, parseFolder, parseFolderOrAddress, parsePath, parseRedis, parseUrl, upTo } from './parse.ts'
import type { Setting } from './setting.ts'

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** Kinds of values: how a text is read, and what it must be. */
const FOLDER = { parse: parseFolder, mustBe: 'a folder' } as const
const FILE = { parse: parseFolder, mustBe: 'a file' } as const
const ROOT = { parse: parseFolderOrAddress, mustBe: 'a folder' } as const
const HOST = { parse: parseListenHost, mustBe: 'a host name or an IP address' } as const
const PORT = { parse: upTo(65_535), mustBe: 'a whole number from 0 to 65535 (0 takes any free port)' } as const
const POSITIVE = { parse: (text: string) => parseCount(text) || undefined, mustBe: 'a whole number above 0' } as const
/** An hour: nobody waits longer for a process, or for a cache. */
const SECONDS = { parse: upTo(3_600), mustBe: 'a whole number of seconds up to 3600' } as const
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([['true', true], ['1', true], ['false', false], ['0', false]])
const BOOLEAN = { parse: (text: string) => BOOLEANS.get(text), mustBe: 'true, false, 1 or 0' } as const

function oneOf<Word extends string> (...words: readonly Word[]) {
  return { parse: (text: string) => words.find((word) => word === text), words, mustBe: `one of ${words.join(', ')}` }
}

/**
 * Every setting of the service: the type Config, flags, environment, `--help` and the tables of README.md and
 * docs/configuration.md come from here. After a change, `npm run tables` writes those tables anew.
 */
export const SETTINGS = {
  /** Project roots as absolute paths and as addresses of sources, the earlier wins. They need not exist. */
  skillsDirs: {
    argument: 'DIR...',
    variable: 'SKILLS_DIR',
    default: './skills',
    ...ROOT,
    separator: delimiter,
    split: (text) => splitRoots(text, delimiter),
    meaning: 'folders of skills, or addresses of sources, the earlier wins; the variable joins several with the path ' +
      'delimiter (`:`, on Windows `;`)',
    more: 'configuration.md#folders'
  },
  /** The personal root as an absolute path or an address; loses to every project root. */
  personalDir: {
    argument: '--personal DIR',
    variable: 'SKILLS_PERSONAL_DIR',
    ...ROOT,
    meaning: 'personal folder of skills: every other folder wins over it'
  },
  /** Absolute paths outside of the roots. */
  linkTargets: {
    argument: '--allow-links DIR',
    variable: 'LINK_TARGETS',
    ...FOLDER,
    separator: delimiter,
    meaning: 'folders into which links of a folder of skills may lead, besides that folder itself; may be repeated',
    more: 'configuration.md#links'
  },
  configFile: {
    argument: '--config FILE',
    variable: 'CONFIG_FILE',
    ...FILE,
    meaning: 'YAML or JSON file with more sources and their settings; a change needs a restart',
    more: 'sources.md#configuration-file'
  },
  stateDir: {
    argument: '--state-dir DIR',
    variable: 'STATE_DIR',
    ...FOLDER,
    meaning: 'folder for what sources fetch; by default `skillserve` in the cache folder of the user',
    more: 'configuration.md#state-folder'
  },
  layout: {
    argument: '--layout LAYOUT',
    variable: 'LAYOUT',
    ...oneOf(...LAYOUTS),
    meaning: 'where skills lie: `flat` (default for folders), `single`, `tree`, `marketplace` or `auto` ' +
      '(default for other sources)',
    more: 'sources.md#layouts'
  },
  host: {
    argument: '--host HOST',
    variable: 'HOST',
    default: '127.0.0.1',
    ...HOST,
    meaning: 'name or address to listen on; the image sets `0.0.0.0`'
  },
  port: {
    argument: '--port PORT',
    variable: 'PORT',
    default: '8080',
    ...PORT,
    meaning: '0 to 65535; `0` takes any free port, the log says which'
  },
  /** Empty, or with a slash at the beginning and none at the end. */
  basePath: {
    argument: '--base-path PATH',
    variable: 'BASE_PATH',
    default: '/',
    parse: parsePath,
    mustBe: 'a path such as /skillserve',
    meaning: 'path prefix of all routes',
    more: 'configuration.md#base-path'
  },
  ui: {
    variable: 'UI',
    default: 'true',
    ...BOOLEAN,
    meaning: 'pages for people at `/`; `false` serves none',
    more: 'pages.md'
  },
  logLevel: {
    argument: '--log-level LEVEL',
    variable: 'LOG_LEVEL',
    default: 'info',
    ...oneOf(...LOG_LEVELS),
    meaning: '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`'
  },
  /** Undefined: pretty on a terminal. */
  logFormat: {
    argument: '--log-format FORMAT',
    variable: 'LOG_FORMAT',
    ...oneOf('pretty', 'json'),
    meaning: '`pretty` or `json`; without it pretty on a terminal, JSON otherwise'
  },
  metricsPort: {
    argument: '--metrics-port PORT',
    variable: 'METRICS_PORT',
    ...PORT,
    meaning: 'separate port for Prometheus: `GET /metrics`; without it none',
    more: 'operations.md#metrics'
  },
  metricsHost: {
    variable: 'METRICS_HOST',
    default: '127.0.0.1',
    ...HOST,
    meaning: 'name or address that `METRICS_PORT` listens on',
    more: 'operations.md#metrics'
  },
  metricsReads: {
    variable: 'METRICS_READS',
    default: 'false',
    ...BOOLEAN,
    meaning: '`true` counts reads by skill in the metrics, which then hold names of skills',
    more: 'operations.md#metrics'
  },
  /** `stdout`, or an absolute path. */
  auditLog: {
    variable: 'AUDIT_LOG',
    parse: (text, cwd) => text === 'stdout' ? text : resolve(cwd, text),
    mustBe: 'a file, or stdout',
    meaning: 'file, or `stdout`, for one JSON line per read: who, what, which revision',
    more: 'operations.md#audit-log'
  },
  auditSalt: {
    variable: 'AUDIT_SALT',
    isSecret: true,
    parse: (text) => text.length >= 16 ? text : undefined,
    mustBe: 'a text of at least 16 characters',
    meaning: 'a secret: the audit log then has HMACs in place of names and addresses of callers',
    more: 'operations.md#audit-log'
  },
  auditRequired: {
    variable: 'AUDIT_REQUIRED',
    default: 'false',
    ...BOOLEAN,
    meaning: '`true` refuses reads while the audit log cannot be written',
    more: 'operations.md#audit-log'
  },
  limits: {
    variable: 'LIMITS',
    default: 'auto',
    ...oneOf('auto', 'on', 'off'),
    meaning: 'limits for each caller, `auto`, `on` or `off`; `auto` turns limits off only on a loopback address ' +
      'without an access file',
    more: 'operations.md#limits-of-callers'
  },
  limitRate: {
    variable: 'LIMIT_RATE',
    default: '100',
    ...POSITIVE,
    meaning: 'units that each caller may use per second on average; a request or a tool call is one',
    more: 'operations.md#limits-of-callers'
  },
  limitBurst: {
    variable: 'LIMIT_BURST',
    ...POSITIVE,
    meaning: 'units that a caller may use at once; without it 2,000',
    more: 'operations.md#limits-of-callers'
  },
  limitsStore: {
    variable: 'LIMITS_STORE',
    isSecret: true,
    parse: parseRedis,
    mustBe: 'an address such as redis://127.0.0.1:6379',
    meaning: 'Redis or Valkey in which several replicas share the limits; needs the package `ioredis`',
    more: 'operations.md#limits-of-callers'
  },
  /** Addresses and subnets. */
  trustedProxies: {
    variable: 'TRUSTED_PROXIES',
    separator: ',',
    parse: (text) => isSubnet(text.trim()) ? text.trim() : undefined,
    mustBe: 'an address, or one with the length of its prefix such as 10.0.0.0/8',
    meaning: 'proxies whose `X-Forwarded-For` names the client, joined by commas; without it the header is ignored',
    more: 'operations.md#limits-of-callers'
  },
  /** Lower-case names and addresses, without port and brackets. */
  allowedHosts: {
    variable: 'ALLOWED_HOSTS',
    separator: ',',
    parse: (text) => parseHost(text.trim()),
    mustBe: 'a host name or an IP address',
    meaning: 'host names the service answers to, joined by commas; unset: all names, or only loopback names when it ' +
      'listens on loopback',
    more: 'configuration.md#hosts'
  },
  /** Origins as browsers write them: `https://app.example`, no default port. */
  allowedOrigins: {
    variable: 'ALLOWED_ORIGINS',
    separator: ',',
    parse: (text) => parseOrigin(text.trim()),
    mustBe: 'an origin such as https://app.example',
    meaning: 'origins of web pages that may use the service (CORS), joined by commas; without it none',
    more: 'configuration.md#origins'
  },
  accessFile: {
    argument: '--access FILE',
    variable: 'ACCESS_FILE',
    ...FILE,
    meaning: 'who may see what (YAML): tokens, issuers, groups, rules; without it everybody sees everything',
    more: 'access.md'
  },
  /** Without a slash at the end. */
  publicUrl: {
    variable: 'PUBLIC_URL',
    parse: parseUrl,
    mustBe: 'a URL such as https://skills.example, without query',
    meaning: 'address of the service as its users type it, base path included; for OAuth clients',
    more: 'access.md'
  },
  watchPolling: {
    variable: 'WATCH_POLLING',
    default: 'false',
    ...BOOLEAN,
    meaning: '`true` compares everything each second, where the system sends no change events',
    more: 'configuration.md#watching'
  },
  shutdownDelay: {
    variable: 'SHUTDOWN_DELAY',
    default: '0',
    ...SECONDS,
    meaning: 'seconds after SIGTERM in which the service is not ready but still serves, up to 3600',
    more: 'operations.md#stopping'
  },
  cacheSeconds: {
    variable: 'CACHE_SECONDS',
    default: '0',
    ...SECONDS,
    meaning: 'seconds for which shared caches (CDN) may answer without asking, up to 3600; `0`: never',
    more: 'operations.md#caches'
  },
  keepRevisionSeconds: {
    variable: 'REVISION_KEEP_SECONDS',
    default: '600',
    parse: upTo(1_209_600),
    mustBe: 'a whole number of seconds up to 1209600 (two weeks)',
    meaning: 'seconds for which a revision stays readable after its last use, up to two weeks; `0` keeps none',
    more: 'rest.md#kept-revisions'
  },
  keepRevisionBytes: {
    variable: 'REVISION_KEEP_BYTES',
    default: '67108864',
    parse: parseCount,
    mustBe: 'a whole number of bytes',
    meaning: 'memory for all kept revisions, in bytes; the least recently used go first; `0` keeps none',
    more: 'rest.md#kept-revisions'
  },
  lockFile: {
    argument: '--locked [FILE]',
    variable: 'LOCKED',
    alone: 'skills.lock',
    ...FILE,
    meaning: 'serve only the revisions that this file names (`skillserve lock` writes it); the flag alone means ' +
      '`skills.lock`',
    more: 'trust.md'
  },
  trustFile: {
    argument: '--trust FILE',
    variable: 'TRUST_FILE',
    ...FILE,
    meaning: 'whose signatures count, and which folders require them',
    more: 'trust.md'
  }
} as const satisfies Readonly<Record<string, Setting>>

export type SettingName = keyof typeof SETTINGS
type Parsed<Row extends Setting> = Exclude<ReturnType<Row['parse']>, undefined>
type ValueOf<Row extends Setting> =
  (Row extends { readonly separator: string } ? readonly Parsed<Row>[] : Parsed<Row>) |
  (Row extends { readonly default: string } ? never : undefined)

/** The settings of a process. */
export type Config = { readonly [Name in SettingName]: ValueOf<(typeof SETTINGS)[Name]> }
