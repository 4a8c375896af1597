import { dirname, resolve } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { areMoreThan } from '../core/layout/find-skills.ts'
import { LAYOUTS } from '../core/layout/layout.ts'
import { StringEnum } from '../schemas/typebox.ts'
import type { KindSetting, SourceAuth, SourceCommon } from '../sources/address/source-kind.ts'
import { type RootSpec, SOURCE_KINDS } from '../sources/kinds.ts'
import { AddressError } from '../sources/source-error.ts'
import { readYamlFile, type YamlFile, type YamlPath } from './files/yaml-file.ts'

const TextSchema = (description: string) => Type.String({ minLength: 1, title: 'a text', description })

const DURATION = '^[1-9][0-9]{0,6}(?:s|m|h)$'
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 }
const MIN_INTERVAL_MS = 10_000
/** Timers take 24 days at most, and end immediately for more: 500 hours are below that, with a tenth on top as well. */
const MAX_HOURS = 500

const optionalText = (description: string) => Type.Optional(TextSchema(description))
const mapping = (description: string) => ({ additionalProperties: false, title: 'an object', description })

const AuthSchema = Type.Object({
  username: optionalText('Default: what the kind of source takes for a token'),
  token_file: optionalText('A file with a token or a password on one line'),
  token_variable: optionalText('The environment variable that holds it'),
  key_file: optionalText('A private key for git over SSH'),
  known_hosts_file: optionalText('The keys of SSH hosts; default: ~/.ssh/known_hosts')
}, mapping('Where credentials are; relative paths begin at the folder of this file'))

/** The keys of all kinds that are fetched: those of their addresses, and those of their settings. */
const KIND_KEYS = Object.fromEntries<KindSetting>([
  ...SOURCE_KINDS.map(({ kind, description }) => [kind, { description }] as const),
  ...SOURCE_KINDS.flatMap(({ settings }) => Object.entries(settings))
])

/** Each path is compared with all of them. */
const MAX_GLOBS = 1_000
const GLOBS = { maxItems: MAX_GLOBS, title: `a list of at most ${MAX_GLOBS} globs` }

const globs = (description: string) => Type.Optional(Type.Array(TextSchema('A glob'), { ...GLOBS, description }))
const matching = (pattern: string, title: string, description: string) =>
  Type.Optional(Type.String({ pattern, title, description }))
const duration = (description: string) => matching(DURATION, 'a duration such as 60s, 5m or 1h', description)

/** The keys of entries of every kind. */
const CommonSchema = Type.Object({
  name: matching('^[\\w.-]{1,64}$', 'up to 64 letters, digits, ".", "_" and "-"', 'What settings and reports call it'),
  layout: Type.Optional(StringEnum(LAYOUTS, {
    title: `one of ${LAYOUTS.join(', ')}`, description: 'Where skills lie in the source'
  })),
  include: globs('Globs of paths: only these skills'),
  exclude: globs('Globs of paths of folders that are not searched; they replace the default'),
  prefix: matching('^[a-z0-9][a-z0-9-]{0,31}$', 'up to 32 letters a to z, digits and hyphens',
    'In front of the name of each skill'),
  interval: duration(`Time between two checks, from 10s to ${MAX_HOURS}h`),
  timeout: duration(`Longest time of a fetch, at most ${MAX_HOURS}h; default 120s`),
  optional: Type.Optional(Type.Boolean({
    title: 'true or false', description: 'Whether the service is ready without it'
  })),
  auth: Type.Optional(AuthSchema),
  webhook: Type.Optional(Type.Object({
    secret_file: TextSchema('A file with the secret that the sender has')
  }, mapping('Who may ask for a check, by POST /hooks/git')))
})

const SourceSchema = Type.Object({
  folder: optionalText('A folder of this machine'),
  ...Object.fromEntries(Object.entries(KIND_KEYS).map(([key, { description, ...rest }]) =>
    [key, Type.Optional({ ...TextSchema(description), ...rest })])),
  ...CommonSchema.properties
}, { additionalProperties: false, title: 'a mapping such as folder: ./skills' })

/** An entry that fits the schema. */
type SourceEntry = Static<typeof CommonSchema> & { readonly folder?: string }

/** The file that `--config` names. */
export const ConfigFileSchema = Type.Object({
  $schema: Type.Optional(Type.String({ title: 'a text', description: 'The address of this schema, for editors' })),
  sources: Type.Array(SourceSchema, {
    title: 'a list of sources', description: 'In the order of precedence: the earlier wins'
  })
}, { additionalProperties: false, title: 'a mapping with the list sources' })

const ROOT_KINDS = ['folder', ...SOURCE_KINDS.map(({ kind }) => kind)]

/** The keys of what is fetched. */
const FETCHED = ['auth', 'interval', 'timeout', 'optional']

/** The keys that need a search for skills. */
const SEARCHED = ['include', 'exclude', 'prefix'] as const

/**
 * The sources of a configuration file, in its order.
 * @throws ConfigError of one line, `FILE:LINE: KEY …`
 */
export async function readConfigFile (path: string): Promise<readonly RootSpec[]> {
  const file = await readYamlFile(path, ConfigFileSchema)
  return file.value.sources.map((entry, index) => toRoot(entry, ['sources', index], file))
}

function toRoot (entry: SourceEntry, at: YamlPath, file: YamlFile<unknown>): RootSpec {
  const given = ROOT_KINDS.filter((kind) => Object.hasOwn(entry, kind))
  const [kindName] = given
  if (kindName === undefined) throw file.error(at, `needs one of ${ROOT_KINDS.join(', ')}`)
  if (given[1] !== undefined) throw file.error([...at, given[1]], `is a second source next to ${kindName}: keep one`)
  const kind = SOURCE_KINDS.find((each) => each.kind === kindName)
  const foreign = foreignKeys(kind).find((key) => Object.hasOwn(entry, key))
  if (foreign !== undefined) throw file.error([...at, foreign], `is not a setting of a source of kind ${kindName}`)
  if (kind === undefined) return toFolder(entry, at, file)
  // The schema lets nothing but texts pass.
  const textAt = (key: string) => Reflect.get(entry, key) as string | undefined
  try {
    const settings = Object.fromEntries(Object.keys(kind.settings).map((key) => [key, textAt(key)]))
    return { ...kind.create(textAt(kindName) ?? '', settings), ...commonOf(entry, at, file) }
  } catch (error) {
    throw error instanceof AddressError ? file.error([...at, kindName], `cannot be used: ${error.message}`) : error
  }
}

/** The keys that an entry of this kind may not have. */
function foreignKeys (kind: typeof SOURCE_KINDS[number] | undefined): string[] {
  const keys = Object.keys(KIND_KEYS).filter((key) => key !== kind?.kind && kind?.settings[key] === undefined)
  return [...keys, ...kind?.takesHooks === true ? [] : ['webhook'], ...kind === undefined ? FETCHED : []]
}

function toFolder (entry: SourceEntry, at: YamlPath, file: YamlFile<unknown>): RootSpec {
  const wrong = SEARCHED.find((key) => (entry.layout ?? 'flat') === 'flat' && entry[key] !== undefined)
  if (wrong !== undefined) throw file.error([...at, wrong], 'is not a setting of a folder with the layout flat')
  return { kind: 'folder', path: resolve(dirname(file.path), entry.folder ?? ''), ...commonOf(entry, at, file) }
}

function commonOf (entry: SourceEntry, at: YamlPath, file: YamlFile<unknown>): Partial<SourceCommon> {
  const { name, layout, include, exclude, prefix, optional, interval, timeout, auth, webhook } = entry
  const intervalMs = interval === undefined ? undefined : milliseconds(interval)
  const timeoutMs = timeout === undefined ? undefined : milliseconds(timeout)
  for (const [key, value = 0] of Object.entries({ interval: intervalMs, timeout: timeoutMs })) {
    if (value > MAX_HOURS * 3_600_000) throw file.error([...at, key], `must be at most ${MAX_HOURS}h`)
  }
  if (intervalMs !== undefined && intervalMs < MIN_INTERVAL_MS) {
    throw file.error([...at, 'interval'], 'must be at least 10s')
  }
  for (const [key, globs = []] of Object.entries({ include, exclude })) {
    if (!areMoreThan(MAX_GLOBS, globs)) continue
    throw file.error([...at, key], `must be ${GLOBS.title}, and each alternative in braces is one`)
  }
  const folder = dirname(file.path)
  return {
    ...name !== undefined && { name },
    ...layout !== undefined && { layout },
    ...include !== undefined && { include },
    ...exclude !== undefined && { exclude },
    ...prefix !== undefined && { prefix },
    ...optional !== undefined && { optional },
    ...intervalMs !== undefined && { intervalMs },
    ...timeoutMs !== undefined && { timeoutMs },
    ...auth !== undefined && { auth: toAuth(auth, folder) },
    ...webhook !== undefined && { webhookSecretFile: resolve(folder, webhook.secret_file) }
  }
}

function toAuth (auth: Static<typeof AuthSchema>, folder: string): SourceAuth {
  const { username, token_file: secretFile, token_variable: secretVariable, key_file: keyFile } = auth
  const knownHostsFile = auth.known_hosts_file
  return {
    ...username !== undefined && { username },
    ...secretFile !== undefined && { secretFile: resolve(folder, secretFile) },
    ...secretVariable !== undefined && { secretVariable },
    ...keyFile !== undefined && { keyFile: resolve(folder, keyFile) },
    ...knownHostsFile !== undefined && { knownHostsFile: resolve(folder, knownHostsFile) }
  }
}

function milliseconds (duration: string): number {
  return Number(duration.slice(0, -1)) * (UNITS[duration.slice(-1)] ?? 1)
}
