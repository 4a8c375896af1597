import { createHash } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import type { Manifest } from '../core/shared/skill.ts'
import { BundleError, parseJson, SIGNATURE_FILE } from './bundle.ts'

const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1'
const PREDICATE_TYPE = 'https://model_signing/signature/v1.0'

/** What OpenSSF Model Signing leaves out of every signature, at the top of a folder. */
const NEVER_SIGNED = ['.git', '.gitattributes', '.github', '.gitignore']

const DIGEST_PREFIX = 'sha256:'

const StatementSchema = Type.Object({
  _type: Type.Literal(STATEMENT_TYPE),
  predicateType: Type.Literal(PREDICATE_TYPE),
  predicate: Type.Object({
    serialization: Type.Object({
      method: Type.Literal('files'),
      hash_type: Type.Literal('sha256'),
      ignore_paths: Type.Optional(Type.Union([Type.Array(Type.String()), Type.Null()]))
    }),
    resources: Type.Array(
      Type.Object({ name: Type.String(), digest: Type.String(), algorithm: Type.Literal('sha256') }), { minItems: 1 }
    )
  })
})

/** The files that a signature is about. */
export interface SignedFiles {
  /** `sha256:<hex>` by path. */
  readonly digests: ReadonlyMap<string, string>
  /** Files and folders that the signer left out, NEVER_SIGNED included. */
  readonly leftOut: readonly string[]
}

/** @throws BundleError for a statement that is not a list of whole files */
export function parseStatement (payload: Buffer): SignedFiles {
  const what = 'does not list files by SHA-256 as OpenSSF Model Signing 1.0 does: sign the skill anew, by whole files'
  const { predicate: { serialization, resources } } = parseJson(payload, StatementSchema, what)
  const digests = new Map(resources.map(({ name, digest }) => [name, `${DIGEST_PREFIX}${digest}`]))
  if (digests.size !== resources.length) throw new BundleError('lists a file twice')
  return { digests, leftOut: serialization.ignore_paths ?? [] }
}

/**
 * A statement about all files of a manifest but the signature, and those that no signature covers. Of a symbolic link,
 * the bytes that it leads to are signed. Undefined when there are none.
 */
export function createStatement ({ skill_name: name, files }: Manifest): Buffer | undefined {
  const ignored = [...NEVER_SIGNED, SIGNATURE_FILE]
  const signed = files.filter(({ path }) => !ignored.includes(path.split('/', 1)[0] ?? ''))
  if (signed.length === 0) return undefined
  const resources = signed.map(({ path, digest }) =>
    ({ name: path, digest: digest.slice(DIGEST_PREFIX.length), algorithm: 'sha256' }))
  const root = createHash('sha256')
  for (const { digest } of resources) root.update(digest, 'hex')
  return Buffer.from(JSON.stringify({
    _type: STATEMENT_TYPE,
    subject: [{ name, digest: { sha256: root.digest('hex') } }],
    predicateType: PREDICATE_TYPE,
    predicate: {
      serialization: { method: 'files', hash_type: 'sha256', allow_symlinks: true, ignore_paths: ignored },
      resources
    }
  }))
}
