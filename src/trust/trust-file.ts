import { createPublicKey, type KeyObject } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { readRegularFile, reasonOf } from '../config/files/files.ts'
import type { ReadNamed } from '../config/files/followed-file.ts'
import { ConfigError, didYouMean, noSuchRoot } from '../config/setting.ts'
import { parseYamlFile, type YamlFile, type YamlPath } from '../config/files/yaml-file.ts'
import { parseScans, type ScanRules, SeveritySchema } from './scans.ts'
import { certificatesIn, hashOf, type Signer } from './signers.ts'
import { StringEnum } from '../schemas/typebox.ts'

function oneOf<A extends string, B extends string> (first: A, second: B, description = {}) {
  return StringEnum([first, second], { title: `${first} or ${second}`, ...description })
}

const FILE = 'a path, from the folder of this file'
const EXPIRED = 'With `root`: whether unchanged skills stay valid after the certificate has expired. Default `refuse`'

function path (description: string) {
  return Type.Optional(Type.String({ minLength: 1, title: FILE, description }))
}

const REVISION = /^sha256:[0-9a-f]{64}$/

export const TrustFileSchema = Type.Object({
  signers: Type.Array(Type.Object({
    name: Type.String({
      minLength: 1,
      maxLength: 200,
      title: 'a name',
      description: 'What answers and the log call the signer. Several keys may have one name'
    }),
    key: path('A public key (PEM; P-256, P-384 or P-521)'),
    root: path('Certificates (PEM) that the certificate of the signer must descend from'),
    expired: Type.Optional(oneOf('refuse', 'accept', { description: EXPIRED }))
  }, { additionalProperties: false, title: 'a signer: `name`, and `key` or `root`' }), { title: 'a list of signers' }),
  roots: Type.Optional(Type.Record(Type.String(), oneOf('report', 'require'), {
    title: 'a mapping of names of roots',
    description: 'What is asked of the skills of a folder or source, by its name. `report`, the default, only says ' +
      'what is found'
  })),
  deny: Type.Optional(Type.Array(Type.String({ minLength: 1, title: 'a revision or the name of a signer' }), {
    title: 'a list', description: 'Revisions, and names of signers, that are not served from any root'
  })),
  scans: Type.Optional(Type.Object({
    file: Type.String({ minLength: 1, title: FILE, description: 'JSON or YAML: what scanners said of revisions' }),
    max_severity: Type.Optional(SeveritySchema),
    max_age_days: Type.Optional(Type.Integer({
      minimum: 1, title: 'a number of days', description: 'Older scans do not count'
    })),
    required: Type.Optional(Type.Boolean({
      title: 'true or false', description: 'With `require`: whether a skill without a scan is refused. Default `false`'
    }))
  }, { additionalProperties: false, title: 'a mapping with `file`' }))
}, {
  $id: 'https://skillserve.dev/schemas/trust.json',
  title: 'a mapping with `signers`, `roots`, `deny` and `scans`',
  description: 'Trust file of skillserve',
  additionalProperties: false
})

/** Whose signatures count, and where they are needed. */
export interface TrustFile {
  readonly signers: readonly Signer[]
  readonly roots: ReadonlyMap<string, 'report' | 'require'>
  readonly deny: ReadonlySet<string>
  readonly scans?: ScanRules
}

type ParsedFile = YamlFile<Static<typeof TrustFileSchema>>

/**
 * Reads the text of a trust file, and the keys and certificates that it names.
 * @param rootNames names of the roots that there are; undefined allows any
 * @throws ConfigError of one line, with the file and the line
 */
export async function parseTrust (
  path: string, text: string, rootNames?: readonly string[], readNamed: ReadNamed = readText
): Promise<TrustFile> {
  const file = parseYamlFile(path, text, TrustFileSchema)
  const { signers, roots = {}, deny = [], scans } = file.value
  for (const name of Object.keys(roots)) {
    if (rootNames?.includes(name) === false) throw file.error(['roots', name], noSuchRoot(name, rootNames))
  }
  const names = signers.map(({ name }) => name)
  for (const [index, denied] of deny.entries()) {
    if (REVISION.test(denied) || names.includes(denied)) continue
    throw file.error(['deny', index], `is neither a revision nor the name of a signer${didYouMean(denied, names)}`)
  }
  const loaded: Signer[] = []
  for (const index of signers.keys()) loaded.push(await loadSigner(file, index, readNamed))
  return {
    signers: loaded,
    roots: new Map(Object.entries(roots)),
    deny: new Set(deny),
    ...scans && {
      scans: {
        byRevision: await load(file, ['scans', 'file'], scans.file, readNamed, (text, path) => parseScans(path, text)),
        maxSeverity: scans.max_severity,
        maxAgeDays: scans.max_age_days,
        isRequired: scans.required ?? false
      }
    }
  }
}

async function readText (path: string): Promise<string> {
  return (await readRegularFile(path)).toString()
}

async function loadSigner (file: ParsedFile, index: number, readNamed: ReadNamed): Promise<Signer> {
  const { name = '', key, root = '', expired } = file.value.signers[index] ?? {}
  const at = ['signers', index] as const
  if ((key === undefined) === (root === '')) throw file.error(at, 'needs either key or root')
  const signer = { name, acceptsExpired: expired === 'accept' }
  if (key !== undefined) return { ...signer, key: await load(file, [...at, 'key'], key, readNamed, parseKey) }
  return { ...signer, roots: await load(file, [...at, 'root'], root, readNamed, certificatesIn) }
}

async function load<Loaded> (
  file: ParsedFile, at: YamlPath, named: string, readNamed: ReadNamed,
  parse: (text: string, path: string) => Loaded | undefined
): Promise<Loaded> {
  const path = resolve(dirname(file.path), named)
  let loaded: Loaded | undefined
  let reason = 'does not name a PEM file of the right kind'
  try {
    loaded = parse(await readNamed(path), path)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const isUnread = error instanceof Error && 'syscall' in error
    if (isUnread) reason = `names a file that cannot be read: ${reasonOf(error)}`
  }
  if (loaded === undefined) throw file.error(at, reason)
  return loaded
}

/** A private key is refused: none belongs near the service. */
function parseKey (text: string): KeyObject | undefined {
  if (text.includes('PRIVATE KEY')) return undefined
  const key = createPublicKey(text)
  return hashOf(key) === undefined ? undefined : key
}
