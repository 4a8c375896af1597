import { dirname, resolve } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { LAYOUTS } from '../layout/layout.ts'
import { StringEnum } from '../schemas/typebox.ts'
import type { KindSetting, SourceAuth, SourceCommon } from '../sources/address/source-kind.ts'
import { type RootSpec, SOURCE_KINDS } from '../sources/kinds.ts'
import { AddressError } from '../sources/source-error.ts'
import { readYamlFile, type YamlFile, type YamlPath } from '../operator/yaml-file.ts'

const TextSchema = (description: string) => Type.String({ minLength: 1, title: 'a text', description })

/** Timers take 24 days at most, and end immediately for more. */
const DURATION = '^(?:[1-9][0-9]{0,5}s|[1-9][0-9]{0,3}m|(?:[1-9][0-9]?|[1-4][0-9]{2})h)$'
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 }
const MIN_INTERVAL_MS = 10_000

const optionalText = (description: string) => Type.Optional(TextSchema(description))
const mapping = (description: string) => ({ additionalProperties: false, title: 'an object', description })

const AuthSchema = Type.Object({
  username: optionalText('Default: the user name that the kind of source needs with a token'),
  token_file: optionalText('A file with a token or a password on one line'),
  token_variable: optionalText('An environment variable with a token or a password'),
  key_file: optionalText('A private key for git over SSH'),
  known_hosts_file: optionalText('Known SSH hosts; default: ~/.ssh/known_hosts')
}, mapping('Credentials; paths are relative to the folder of this file'))

/** Keys for the address and the settings of each kind of source, except folders. */
const KIND_KEYS = Object.fromEntries<KindSetting>([
  ...SOURCE_KINDS.map(({ kind, description }) => [kind, { description }] as const),
  ...SOURCE_KINDS.flatMap(({ settings }) => Object.entries(settings))
])

const globs = (description: string) =>
  Type.Optional(Type.Array(TextSchema('A glob'), { title: 'a list of globs', description }))
const matching = (pattern: string, title: string, description: string) =>
  Type.Optional(Type.String({ pattern, title, description }))
const duration = (description: string) =>
  matching(DURATION, 'a duration up to 499h, such as 60s, 5m or 1h', description)

/** Keys that any entry may have. */
const CommonSchema = Type.Object({
  name: matching('^[\\w.-]{1,64}$', 'up to 64 letters, digits, ".", "_" and "-"', 'Its name in rules and reports'),
  layout: Type.Optional(StringEnum(LAYOUTS, {
    title: `one of ${LAYOUTS.join(', ')}`, description: 'Where skills lie in the source'
  })),
  include: globs('Globs of paths: only these skills'),
  exclude: globs('Globs of paths of folders that are not searched; they replace the default'),
  prefix: matching('^[a-z0-9][a-z0-9-]{0,31}$', 'up to 32 letters a to z, digits and hyphens',
    'Put before the name of each skill'),
  interval: duration('Time between two checks, at least 10s'),
  timeout: duration('Longest time of a fetch; default 120s'),
  optional: Type.Optional(Type.Boolean({
    title: 'true or false', description: 'Whether the service is ready without it'
  })),
  auth: Type.Optional(AuthSchema),
  webhook: Type.Optional(Type.Object({
    secret_file: TextSchema('A file with the secret of the sender')
  }, mapping('Lets POST /hooks/git ask for a check')))
})

const SourceSchema = Type.Object({
  folder: optionalText('A folder of this machine'),
  ...Object.fromEntries(Object.entries(KIND_KEYS).map(([key, { description, ...rest }]) =>
    [key, Type.Optional({ ...TextSchema(description), ...rest })])),
  ...CommonSchema.properties
}, { additionalProperties: false, title: 'a mapping such as folder: ./skills' })

type SourceEntry = Static<typeof CommonSchema> & { readonly folder?: string }

export const ConfigFileSchema = Type.Object({
  $schema: Type.Optional(Type.String({ title: 'a text', description: 'The address of this schema, for editors' })),
  sources: Type.Array(SourceSchema, {
    title: 'a list of sources', description: 'In the order of precedence: on a name clash the first wins'
  })
}, { additionalProperties: false, title: 'a mapping with the list sources' })

/** Keys that only layouts other than `flat` use, which search for skills. */
const SEARCH_KEYS = ['include', 'exclude', 'prefix']

const ROOT_KINDS = ['folder', ...SOURCE_KINDS.map(({ kind }) => kind)]

/**
 * Returns the sources of a configuration file, in its order.
 * @throws ConfigError of one line, `FILE:LINE: KEY …`
 */
export async function readConfigFile (path: string): Promise<readonly RootSpec[]> {
  const file = await readYamlFile(path, ConfigFileSchema, 'CONFIG_FILE or --config')
  return file.value.sources.map((entry, index) => toRoot(entry, ['sources', index], file))
}

function toRoot (entry: SourceEntry, at: YamlPath, file: YamlFile<unknown>): RootSpec {
  const given = ROOT_KINDS.filter((kind) => Object.hasOwn(entry, kind))
  const [kindName] = given
  if (kindName === undefined) throw file.error(at, `needs one of ${ROOT_KINDS.join(', ')}`)
  if (given[1] !== undefined) throw file.error([...at, given[1]], `is a second source next to ${kindName}: keep one`)
  const kind = SOURCE_KINDS.find((each) => each.kind === kindName)
  const known = keysOf(kind, entry.layout)
  const foreign = Object.keys(entry).find((key) => !known.includes(key))
  if (foreign !== undefined) {
    throw file.error([...at, foreign], SEARCH_KEYS.includes(foreign)
      ? 'only applies to layouts other than flat'
      : `is not a setting of a source of kind ${kindName}`)
  }
  const common = commonOf(entry, at, file)
  if (kind === undefined) return { kind: 'folder', path: resolve(dirname(file.path), entry.folder ?? ''), ...common }
  // The schema allows only text here.
  const textAt = (key: string) => Reflect.get(entry, key) as string | undefined
  try {
    const settings = Object.fromEntries(Object.keys(kind.settings).map((key) => [key, textAt(key)]))
    return { ...kind.create(textAt(kindName) ?? '', settings), ...common, configFile: file.path }
  } catch (error) {
    if (!(error instanceof AddressError)) throw error
    throw file.error([...at, error.setting ?? kindName], `cannot be used: ${error.message}`)
  }
}

/** Returns the keys that an entry may have. */
function keysOf (kind: typeof SOURCE_KINDS[number] | undefined, layout = 'flat'): readonly string[] {
  if (kind === undefined) return ['folder', 'name', 'layout', ...layout === 'flat' ? [] : SEARCH_KEYS]
  const common = Object.keys(CommonSchema.properties).filter((key) => key !== 'webhook' || kind.takesHooks === true)
  return [kind.kind, ...Object.keys(kind.settings), ...common]
}

/** Converts the keys that any kind may have. The schema has already refused unknown keys. */
function commonOf (entry: SourceEntry, at: YamlPath, file: YamlFile<unknown>): Partial<SourceCommon> {
  const common = Object.entries(entry).filter(([key]) => Object.hasOwn(CommonSchema.properties, key))
  const { interval, timeout, auth, webhook, ...others } = Object.fromEntries(common) as Static<typeof CommonSchema>
  if (interval !== undefined && milliseconds(interval) < MIN_INTERVAL_MS) {
    throw file.error([...at, 'interval'], 'must be at least 10s')
  }
  const folder = dirname(file.path)
  return {
    ...others,
    ...interval !== undefined && { intervalMs: milliseconds(interval) },
    ...timeout !== undefined && { timeoutMs: milliseconds(timeout) },
    ...auth !== undefined && { auth: toAuth(auth, folder) },
    ...webhook !== undefined && { webhookSecretFile: resolve(folder, webhook.secret_file) }
  }
}

const AUTH_NAMES = {
  username: 'username',
  token_file: 'secretFile',
  token_variable: 'secretVariable',
  key_file: 'keyFile',
  known_hosts_file: 'knownHostsFile'
} as const satisfies Readonly<Record<keyof Static<typeof AuthSchema>, keyof SourceAuth>>

function toAuth (auth: Static<typeof AuthSchema>, folder: string): SourceAuth {
  return Object.fromEntries(Object.entries(auth).map(([key, text]) =>
    [AUTH_NAMES[key as keyof typeof AUTH_NAMES], key.endsWith('_file') ? resolve(folder, text) : text]))
}

function milliseconds (duration: string): number {
  return Number(duration.slice(0, -1)) * (UNITS[duration.slice(-1)] ?? 1)
}
