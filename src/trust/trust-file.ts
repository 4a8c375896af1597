import { createPublicKey, type KeyObject } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import { Type } from '@sinclair/typebox'
import { readRegularFile, reasonOf } from '../operator/files.ts'
import type { ReadNamed } from '../operator/followed-file.ts'
import { ConfigError, didYouMean, noSuchRoot } from '../operator/setting.ts'
import { parseYamlFile, type YamlPath } from '../operator/yaml-file.ts'
import { NamedFile, parseScans, type ScanRules, ScanRulesSchema } from './scans.ts'
import { certificateProblem, certificatesIn, createSigner, hashOf, type Signer } from './signers.ts'
import { StringEnum } from '../schemas/typebox.ts'

const REVISION = /^sha256:[0-9a-f]{64}$/

export const TrustFileSchema = Type.Object({
  signers: Type.Array(Type.Object({
    name: Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'What answers and the log call the signer. Several keys may have one name'
    }),
    key: Type.Optional(NamedFile('A public key (PEM; P-256, P-384 or P-521)')),
    root: Type.Optional(NamedFile('Certificates (PEM): one of them issued the certificate of the signer, or is it')),
    expired: Type.Optional(StringEnum(['refuse', 'accept'], {
      description: 'With `root`: whether unchanged skills stay valid after the certificate has expired. ' +
        'Default `refuse`'
    }))
  }, { additionalProperties: false })),
  roots: Type.Optional(Type.Record(Type.String(), StringEnum(['report', 'require']), {
    description: 'What is asked of the skills of a folder or source, by its name. `report`, the default, only says ' +
      'what is found'
  })),
  deny: Type.Optional(Type.Array(Type.String({ minLength: 1 }), {
    description: 'Revisions, and names of signers, that are not served from any root'
  })),
  scans: Type.Optional(ScanRulesSchema)
}, {
  $id: 'https://skillserve.dev/schemas/trust.json',
  description: 'Trust file of skillserve',
  additionalProperties: false
})

/** The content of a trust file: known signers, and the roots where their signatures are required. */
export interface TrustFile {
  readonly signers: readonly Signer[]
  readonly roots: ReadonlyMap<string, 'report' | 'require'>
  readonly deny: ReadonlySet<string>
  readonly scans?: ScanRules
}

/**
 * Parses a trust file, and reads the keys, certificates and scans that it names.
 * @param rootNames names of all roots; undefined allows any
 * @throws ConfigError of one line, with the file and the line
 */
export async function parseTrust (
  path: string, text: string, rootNames?: readonly string[],
  readNamed: ReadNamed = async (place) => (await readRegularFile(place)).toString()
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

  /** Reads a file that the trust file names at a key. */
  async function load<T> (
    at: YamlPath, named: string, expected: string, parse: (text: string, place: string) => T
  ): Promise<T> {
    const place = resolve(dirname(path), named)
    const text = await readNamed(place).catch((error: unknown) => {
      throw file.error(at, `names a file that cannot be read: ${reasonOf(error)}`)
    })
    try {
      return parse(text, place)
    } catch (error) {
      throw error instanceof ConfigError ? error : file.error(at, `must name ${expected}`)
    }
  }

  const loaded: Signer[] = []
  for (const [index, { name, key, root, expired }] of signers.entries()) {
    const at = ['signers', index] as const
    if ((key === undefined) === (root === undefined)) throw file.error(at, 'needs either key or root')
    const known = key === undefined
      ? { issuers: await load([...at, 'root'], root ?? '', 'a PEM file with certificates', certificatesIn) }
      : { key: await load([...at, 'key'], key, 'a PEM file with a P-256, P-384 or P-521 public key', parseKey) }
    const problem = known.issuers?.map((each) => certificateProblem(each)).find((each) => each !== undefined)
    if (problem !== undefined) throw file.error([...at, 'root'], `names a certificate that ${problem}`)
    loaded.push(createSigner({ name, acceptsExpired: expired === 'accept', ...known }))
  }
  return {
    signers: loaded,
    roots: new Map(Object.entries(roots)),
    deny: new Set(deny),
    ...scans && {
      scans: {
        ...scans,
        byRevision: await load(['scans', 'file'], scans.file, 'a file of scans',
          (text, place) => parseScans(place, text))
      }
    }
  }
}

/** Parses a public key. Refuses a private key, which does not belong near the service. */
function parseKey (text: string): KeyObject {
  const key = createPublicKey(text)
  if (text.includes('PRIVATE KEY') || hashOf(key) === undefined) throw new Error('it is not a public key of this kind')
  return key
}
