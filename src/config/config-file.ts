import { dirname, resolve } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { LAYOUTS } from '../core/layout/layout.ts'
import { StringEnum } from '../schemas/typebox.ts'
import { archiveSource, gitSource, ociSource, parseAddress, parsePath, parseRef } from '../sources/address/address.ts'
import { AddressError } from '../sources/source-error.ts'
import { ROOT_KINDS, type RootSpec, type Source, type SourceAuth, type SourceCommon } from '../sources/address/source-spec.ts'
import { readYamlFile, type YamlFile, type YamlPath } from './yaml-file.ts'

const TextSchema = (description: string) => Type.String({ minLength: 1, title: 'a text', description })

const DURATION = '^[1-9][0-9]{0,6}(?:s|m|h)$'
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 }
const MIN_INTERVAL_MS = 10_000

const AuthSchema = Type.Object({
  username: Type.Optional(TextSchema('Default: what the kind of source takes for a token')),
  token_file: Type.Optional(TextSchema('A file with a token or a password on one line')),
  token_variable: Type.Optional(TextSchema('The environment variable that holds it')),
  key_file: Type.Optional(TextSchema('A private key for git over SSH')),
  known_hosts_file: Type.Optional(TextSchema('The keys of SSH hosts; default: ~/.ssh/known_hosts'))
}, { additionalProperties: false, title: 'an object', description: 'Where credentials are; relative paths begin at the folder of this file' })

const SourceSchema = Type.Object({
  folder: Type.Optional(TextSchema('A folder of this machine')),
  git: Type.Optional(TextSchema('A repository: https://…, ssh://…, file://…')),
  archive: Type.Optional(TextSchema('An archive: https://….zip, https://….tar.gz')),
  s3: Type.Optional(TextSchema('A bucket: s3://bucket/prefix')),
  oci: Type.Optional(TextSchema('An artifact of a registry: oci://host/name:tag')),
  name: Type.Optional(Type.String({ pattern: '^[\\w.-]{1,64}$', title: 'up to 64 letters, digits, ".", "_" and "-"', description: 'What settings and reports call it' })),
  ref: Type.Optional(TextSchema('git: branch, tag, refs/… or full commit id; default: the default branch')),
  path: Type.Optional(TextSchema('A folder in the source')),
  digest: Type.Optional(Type.String({ pattern: '^sha256:[0-9a-f]{64}$', title: 'sha256: and 64 hexadecimal digits', description: 'archive: the only bytes that are published' })),
  endpoint: Type.Optional(TextSchema('s3: the address of the service; default: Amazon')),
  region: Type.Optional(TextSchema('s3: default us-east-1')),
  marker: Type.Optional(TextSchema('s3: a key that is written last; only its change is looked for')),
  layout: Type.Optional(StringEnum(LAYOUTS, { title: `one of ${LAYOUTS.join(', ')}`, description: 'Where skills lie in the source' })),
  include: Type.Optional(Type.Array(TextSchema('A glob'), { title: 'a list of globs', description: 'Globs of paths: only these skills' })),
  exclude: Type.Optional(Type.Array(TextSchema('A glob'), { title: 'a list of globs', description: 'Globs of paths of folders that are not searched; they replace the default' })),
  prefix: Type.Optional(Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,31}$', title: 'up to 32 letters a to z, digits and hyphens', description: 'In front of the name of each skill' })),
  interval: Type.Optional(Type.String({ pattern: DURATION, title: 'a duration such as 60s, 5m or 1h', description: 'Time between two checks, at least 10s' })),
  timeout: Type.Optional(Type.String({ pattern: DURATION, title: 'a duration such as 60s, 5m or 1h', description: 'Longest time of a fetch; default 120s' })),
  optional: Type.Optional(Type.Boolean({ title: 'true or false', description: 'Whether the service is ready without it' })),
  auth: Type.Optional(AuthSchema),
  webhook: Type.Optional(Type.Object({ secret_file: TextSchema('A file with the secret that the sender has') }, { additionalProperties: false, title: 'an object', description: 'Who may ask for a check, by POST /hooks/git' }))
}, { additionalProperties: false, title: 'an object' })

type SourceEntry = Static<typeof SourceSchema>

/** The file that `--config` names. */
export const ConfigFileSchema = Type.Object({
  $schema: Type.Optional(Type.String({ title: 'a text', description: 'The address of this schema, for editors' })),
  sources: Type.Array(SourceSchema, { title: 'a list of sources', description: 'In the order of precedence: the earlier wins' })
}, { additionalProperties: false, title: 'the configuration of skillserve' })

const FETCHED = ROOT_KINDS.filter((kind) => kind !== 'folder')

/** The keys that belong to some kinds only. */
const KINDS_OF: Readonly<Partial<Record<keyof SourceEntry, readonly string[]>>> = {
  ref: ['git'],
  path: ['git', 'archive', 'oci'],
  digest: ['archive'],
  endpoint: ['s3'],
  region: ['s3'],
  marker: ['s3'],
  webhook: ['git'],
  auth: FETCHED,
  interval: FETCHED,
  timeout: FETCHED,
  optional: FETCHED
}

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
  const folder = dirname(file.path)
  const given = ROOT_KINDS.filter((kind) => entry[kind] !== undefined)
  const [kind] = given
  if (kind === undefined || given.length > 1) throw file.error(given[1] === undefined ? at : [...at, given[1]], `needs one of ${ROOT_KINDS.join(', ')}`)
  for (const [key, kinds] of Object.entries(KINDS_OF)) {
    if (Object.hasOwn(entry, key) && !kinds.includes(kind)) throw file.error([...at, key], `is no setting of a source of kind ${kind}`)
  }
  if (entry.folder !== undefined) {
    const wrong = SEARCHED.find((key) => (entry.layout ?? 'flat') === 'flat' && entry[key] !== undefined)
    if (wrong !== undefined) throw file.error([...at, wrong], 'is no setting of a folder with the layout flat')
    return { kind: 'folder', path: resolve(folder, entry.folder), ...commonOf(entry, at, file) }
  }
  try {
    return { ...toSource(entry), ...commonOf(entry, at, file) }
  } catch (error) {
    throw error instanceof AddressError ? file.error([...at, kind], `cannot be used: ${error.message}`) : error
  }
}

function toSource (entry: SourceEntry): Source {
  const path = entry.path === undefined ? {} : { path: parsePath(entry.path) }
  if (entry.git !== undefined) {
    const source = gitSource(entry.git.replace(/^git\+/, ''), undefined)
    if (entry.ref === undefined && entry.path === undefined) return source
    return { ...source, at: [{ ...entry.ref !== undefined && { ref: parseRef(entry.ref) }, path: path.path ?? '' }] }
  }
  if (entry.archive !== undefined) return { ...archiveSource(entry.archive), ...path, ...entry.digest !== undefined && { digest: entry.digest } }
  if (entry.oci !== undefined) return { ...ociSource(entry.oci, undefined), ...path }
  const source = parseAddress(entry.s3 ?? '')
  if (source.kind !== 's3') throw new AddressError('an address of a bucket is s3://bucket/prefix')
  const { endpoint, region, marker } = entry
  return { ...source, ...endpoint !== undefined && { endpoint }, ...region !== undefined && { region }, ...marker !== undefined && { marker } }
}

function commonOf (entry: SourceEntry, at: YamlPath, file: YamlFile<unknown>): Partial<SourceCommon> {
  const { name, layout, include, exclude, prefix, optional, interval, timeout, auth, webhook } = entry
  const intervalMs = interval === undefined ? undefined : milliseconds(interval)
  if (intervalMs !== undefined && intervalMs < MIN_INTERVAL_MS) throw file.error([...at, 'interval'], 'must be at least 10s')
  const folder = dirname(file.path)
  return {
    ...name !== undefined && { name },
    ...layout !== undefined && { layout },
    ...include !== undefined && { include },
    ...exclude !== undefined && { exclude },
    ...prefix !== undefined && { prefix },
    ...optional !== undefined && { optional },
    ...intervalMs !== undefined && { intervalMs },
    ...timeout !== undefined && { timeoutMs: milliseconds(timeout) },
    ...auth !== undefined && { auth: toAuth(auth, folder) },
    ...webhook !== undefined && { webhookSecretFile: resolve(folder, webhook.secret_file) }
  }
}

function toAuth (auth: Static<typeof AuthSchema>, folder: string): SourceAuth {
  const { username, token_file: tokenFile, token_variable: tokenVariable, key_file: keyFile, known_hosts_file: knownHostsFile } = auth
  return {
    ...username !== undefined && { username },
    ...tokenFile !== undefined && { secretFile: resolve(folder, tokenFile) },
    ...tokenVariable !== undefined && { secretVariable: tokenVariable },
    ...keyFile !== undefined && { keyFile: resolve(folder, keyFile) },
    ...knownHostsFile !== undefined && { knownHostsFile: resolve(folder, knownHostsFile) }
  }
}

function milliseconds (duration: string): number {
  return Number(duration.slice(0, -1)) * (UNITS[duration.slice(-1)] ?? 1)
}
