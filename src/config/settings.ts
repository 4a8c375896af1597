import { delimiter } from 'node:path'
import { parseHost, parseListenHost, parseOrigin } from '../http/request/hosts.ts'
import { LIMITS_SETTINGS } from './limits-settings.ts'
import { splitRoots } from '../sources/address/address.ts'
import { OBSERVE_SETTINGS } from './observe-settings.ts'
import { BOOLEANS, LOG_LEVELS, MAX_DELAY_SECONDS, MAX_KEEP_SECONDS, MAX_PORT, parseCount, parseDelay, parseFolder, parseFolderOrAddress, parseKeepSeconds, parsePath, parsePort, parseUrl } from './parse.ts'
import type { Setting } from './setting.ts'
import { SOURCE_SETTINGS } from './source-settings.ts'
import { TRUST_SETTINGS } from './trust-settings.ts'

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
    separator: delimiter,
    split: (text) => splitRoots(text, delimiter),
    parse: parseFolderOrAddress,
    mustBe: 'a folder',
    meaning: 'folders of skills, or addresses of sources, the earlier wins; the variable joins several with the path delimiter (`:`, on Windows `;`)',
    section: 'folders'
  },
  /** The personal root as an absolute path or an address; loses to every project root. */
  personalDir: {
    argument: '--personal DIR',
    variable: 'SKILLS_PERSONAL_DIR',
    parse: parseFolderOrAddress,
    mustBe: 'a folder',
    meaning: 'personal folder of skills, loses to all of those'
  },
  /** Absolute paths of folders outside of the roots. */
  linkTargets: {
    argument: '--allow-links DIR',
    variable: 'LINK_TARGETS',
    separator: delimiter,
    parse: parseFolder,
    mustBe: 'a folder',
    meaning: 'folders that links in a folder of skills may lead into, besides that folder itself; several like those',
    section: 'links'
  },
  ...SOURCE_SETTINGS,
  host: {
    argument: '--host HOST',
    variable: 'HOST',
    default: '127.0.0.1',
    parse: parseListenHost,
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
  ui: {
    variable: 'UI',
    default: 'true',
    parse: (text) => BOOLEANS.get(text),
    mustBe: 'true, false, 1 or 0',
    meaning: 'pages for people at `/`; `false` serves none',
    section: 'pages'
  },
  logLevel: {
    argument: '--log-level LEVEL',
    variable: 'LOG_LEVEL',
    default: 'info',
    parse: (text) => LOG_LEVELS.find((level) => level === text),
    words: LOG_LEVELS,
    mustBe: 'trace, debug, info, warn, error, fatal or silent',
    meaning: '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`'
  },
  ...OBSERVE_SETTINGS,
  ...LIMITS_SETTINGS,
  /** Lower-case names and addresses, without port and brackets. */
  allowedHosts: {
    variable: 'ALLOWED_HOSTS',
    separator: ',',
    parse: (text) => parseHost(text.trim()),
    mustBe: 'a host name or an IP address',
    meaning: 'host names the service answers to, joined by commas; unset: all names, or only loopback names when it listens on loopback',
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
  /** Absolute path of the access file. */
  accessFile: {
    argument: '--access FILE',
    variable: 'ACCESS_FILE',
    parse: parseFolder,
    mustBe: 'a file',
    meaning: 'who may see what (YAML): tokens, issuers, groups, rules; without it everybody sees everything',
    section: 'access'
  },
  /** Without a slash at the end. */
  publicUrl: {
    variable: 'PUBLIC_URL',
    parse: parseUrl,
    mustBe: 'a URL such as https://skills.example, without query',
    meaning: 'address of the service as its users type it, base path included; for OAuth clients',
    section: 'access'
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
  shutdownDelay: {
    variable: 'SHUTDOWN_DELAY',
    default: '0',
    parse: parseDelay,
    mustBe: `a whole number of seconds up to ${MAX_DELAY_SECONDS}`,
    meaning: `how long the service goes on serving after SIGTERM, not ready, before it stops, in seconds up to ${MAX_DELAY_SECONDS}`,
    section: 'replicas'
  },
  cacheSeconds: {
    variable: 'CACHE_SECONDS',
    default: '0',
    parse: parseDelay,
    mustBe: `a whole number of seconds up to ${MAX_DELAY_SECONDS}`,
    meaning: 'how long shared caches (CDN) may answer without asking, in seconds up to 3600; twice that while they ask; `0`: each answer is checked',
    section: 'replicas'
  },
  keepRevisionSeconds: {
    variable: 'REVISION_KEEP_SECONDS',
    default: '600',
    parse: parseKeepSeconds,
    mustBe: `a whole number of seconds up to ${MAX_KEEP_SECONDS} (two weeks)`,
    meaning: 'how long a revision that was handed out stays readable after a change, in seconds, two weeks at most; `0` keeps none',
    section: 'kept-revisions'
  },
  keepRevisionBytes: {
    variable: 'REVISION_KEEP_BYTES',
    default: '67108864',
    parse: parseCount,
    mustBe: 'a whole number of bytes',
    meaning: 'most bytes of all kept revisions together, the oldest go first; `0` keeps none',
    section: 'kept-revisions'
  },
  ...TRUST_SETTINGS
} as const satisfies Readonly<Record<string, Setting>>

export type SettingName = keyof typeof SETTINGS
type Parsed<Row extends Setting> = Exclude<ReturnType<Row['parse']>, undefined>
type ValueOf<Row extends Setting> =
  (Row extends { readonly separator: string } ? readonly Parsed<Row>[] : Parsed<Row>) | (Row extends { readonly default: string } ? never : undefined)

/** The settings of a process. */
export type Config = { readonly [Name in SettingName]: ValueOf<(typeof SETTINGS)[Name]> }
