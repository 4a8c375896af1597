import { createPublicKey, type KeyObject } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { readRegularFileSync, whyUnreadable } from '../config/files/files.ts'
import { ConfigError, didYouMean, noSuchRoot } from '../config/setting.ts'
import { parseYamlFile, type YamlFile } from '../config/files/yaml-file.ts'
import { parseScans, type ScanRules, SeveritySchema } from './scans.ts'
import { certificatesIn, hashOf, type Signer } from './signers.ts'
import { StringEnum } from '../schemas/typebox.ts'

function oneOf<A extends string, B extends string> (first: A, second: B, description?: string) {
  return StringEnum([first, second], { title: `${first} or ${second}`, ...description !== undefined && { description } })
}

const FILE = 'a path, from the folder of this file'
const REVISION = /^sha256:[0-9a-f]{64}$/

export const TrustFileSchema = Type.Object({
  signers: Type.Array(Type.Object({
    name: Type.String({ minLength: 1, maxLength: 200, title: 'a name', description: 'What answers and the log call the signer. Several keys may have one name' }),
    key: Type.Optional(Type.String({ minLength: 1, title: FILE, description: 'A public key (PEM; P-256, P-384 or P-521)' })),
    root: Type.Optional(Type.String({ minLength: 1, title: FILE, description: 'Certificates (PEM) that the certificate of the signer must descend from' })),
    expired: Type.Optional(oneOf('refuse', 'accept', 'With `root`: whether unchanged skills stay valid after the certificate has expired. Default `refuse`'))
  }, { additionalProperties: false, title: 'a signer: `name`, and `key` or `root`' }), { title: 'a list of signers' }),
  roots: Type.Optional(Type.Record(Type.String(), oneOf('report', 'require'), {
    title: 'a mapping of names of roots', description: 'What is asked of the skills of a folder or source, by its name. `report`, the default, only says what is found'
  })),
  deny: Type.Optional(Type.Array(Type.String({ minLength: 1, title: 'a revision or the name of a signer' }), {
    title: 'a list', description: 'Revisions, and names of signers, that are not served from any root'
  })),
  scans: Type.Optional(Type.Object({
    file: Type.String({ minLength: 1, title: FILE, description: 'JSON or YAML: what scanners said of revisions' }),
    max_severity: Type.Optional(SeveritySchema),
    max_age_days: Type.Optional(Type.Integer({ minimum: 1, title: 'a number of days', description: 'Older scans do not count' })),
    required: Type.Optional(Type.Boolean({ title: 'true or false', description: 'With `require`: whether a skill without a scan is refused. Default `false`' }))
  }, { additionalProperties: false, title: 'a mapping with `file`' }))
}, {
  $id: 'https://skillserve.dev/schemas/trust.json',
  title: 'a mapping with `signers`, `roots`, `deny` and `scans`',
  description: 'Trust file of skillserve',
  additionalProperties: false
})

/** Whose signatures count, and where they are needed. */
export interface Trust {
  readonly signers: readonly Signer[]
  readonly roots: ReadonlyMap<string, 'report' | 'require'>
  readonly deny: ReadonlySet<string>
  readonly scans?: ScanRules
}

type ParsedFile = YamlFile<Static<typeof TrustFileSchema>>

/**
 * Reads the text of a trust file, and the keys and certificates that it names.
 * @param rootNames names of the roots that there are; undefined allows any
 * @param reads called with each key and certificate file
 * @throws ConfigError of one line, with the file and the line
 */
export function parseTrust (path: string, text: string, rootNames?: readonly string[], reads: (path: string, text: string) => void = () => {}): Trust {
  const file = parseYamlFile(path, text, TrustFileSchema)
  const { signers, roots = {}, deny = [], scans } = file.value
  for (const name of Object.keys(roots)) if (rootNames?.includes(name) === false) throw file.error(['roots', name], noSuchRoot(name, rootNames))
  const names = signers.map(({ name }) => name)
  for (const [index, denied] of deny.entries()) {
    if (!REVISION.test(denied) && !names.includes(denied)) throw file.error(['deny', index], `is neither a revision nor the name of a signer${didYouMean(denied, names)}`)
  }
  return {
    signers: signers.map((_, index) => loadSigner(file, index, reads)), roots: new Map(Object.entries(roots)), deny: new Set(deny), ...scans && { scans: loadScans(file, scans, reads) }
  }
}

function loadScans (file: ParsedFile, { file: named, max_severity: maxSeverity, max_age_days: maxAgeDays, required: isRequired = false }: NonNullable<ParsedFile['value']['scans']>, reads: (path: string, text: string) => void): ScanRules {
  const byRevision = load(file, ['scans', 'file'], named, reads, (text, path) => parseScans(path, text))
  return { byRevision, maxSeverity, maxAgeDays, isRequired }
}

function loadSigner (file: ParsedFile, index: number, reads: (path: string, text: string) => void): Signer {
  const { name = '', key, root, expired } = file.value.signers[index] ?? {}
  if ((key === undefined) === (root === undefined)) throw file.error(['signers', index], 'needs either key or root')
  const acceptsExpired = expired === 'accept'
  if (key !== undefined) return { name, acceptsExpired, key: load(file, ['signers', index, 'key'], key, reads, parseKey) }
  return { name, acceptsExpired, roots: load(file, ['signers', index, 'root'], root ?? '', reads, certificatesIn) }
}

function load<Loaded> (file: ParsedFile, at: ReadonlyArray<string | number>, named: string, reads: (path: string, text: string) => void, parse: (text: string, path: string) => Loaded | undefined): Loaded {
  const path = resolve(dirname(file.path), named)
  let loaded: Loaded | undefined
  let reason = 'does not name a PEM file of the right kind'
  try {
    reads(path, '')
    const text = readRegularFileSync(path).toString()
    reads(path, text)
    loaded = parse(text, path)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    if (error instanceof Error && 'syscall' in error) reason = `names a file that cannot be read: ${whyUnreadable(error)}`
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
