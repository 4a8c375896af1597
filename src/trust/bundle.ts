import { createHash } from 'node:crypto'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Manifest } from '../core/shared/skill.ts'

/** Name of a skill's signature file: a Sigstore bundle as OpenSSF Model Signing 1.0 defines it. */
export const SIGNATURE_FILE = 'skill.oms.sig'

/** Largest signature file that is read, in bytes: the 344 of a public collection have 6,600 on average. */
export const MAX_SIGNATURE_BYTES = 2 * 1_048_576

const MEDIA_TYPE = 'application/vnd.dev.sigstore.bundle.v0.3+json'
export const PAYLOAD_TYPE = 'application/vnd.in-toto+json'
const MAX_CERTIFICATES = 10

const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1'
const PREDICATE_TYPE = 'https://model_signing/signature/v1.0'

/** Paths at the top of a folder that OpenSSF Model Signing never signs. */
const NEVER_SIGNED = ['.git', '.gitattributes', '.github', '.gitignore']

const DIGEST_PREFIX = 'sha256:'

const BundleSchema = Type.Object({
  mediaType: Type.Literal(MEDIA_TYPE),
  verificationMaterial: Type.Object({
    publicKey: Type.Optional(Type.Object({ hint: Type.Optional(Type.String()) })),
    x509CertificateChain: Type.Optional(Type.Object({
      certificates: Type.Array(Type.Object({ rawBytes: Type.String() }), { minItems: 1, maxItems: MAX_CERTIFICATES })
    }))
  }),
  dsseEnvelope: Type.Object({
    payload: Type.String(),
    payloadType: Type.Literal(PAYLOAD_TYPE),
    signatures: Type.Array(Type.Object({ sig: Type.String() }), { minItems: 1, maxItems: 1 })
  })
})

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

/** Error for an invalid signature file. The message completes the sentence "the signature …". */
export class BundleError extends Error {}

/** Parsed signature file: the signed statement, the signature, and the signer's key or certificates. */
export interface Bundle {
  /** In-toto statement that was signed. */
  readonly payload: Buffer
  readonly signature: Buffer
  /** Digest of the signer's key; `''` in old bundles. Undefined for a bundle that was signed with a certificate. */
  readonly keyHint: string | undefined
  /** Certificates in DER, the leaf first; none if a key signed. */
  readonly certificates: readonly Buffer[]
}

/** Files that a statement covers and exempts. */
export interface SignedFiles {
  /** Digests, `sha256:<hex>`, by path. */
  readonly digests: ReadonlyMap<string, string>
  /** Files and folders that the signature exempts, NEVER_SIGNED included. */
  readonly leftOut: readonly string[]
}

/** @throws BundleError */
export function parseBundle (bytes: Buffer): Bundle {
  const what = 'is not a bundle of OpenSSF Model Signing 1.0'
  const { verificationMaterial, dsseEnvelope } = parseJson(bytes, BundleSchema, what)
  const { publicKey, x509CertificateChain: chain } = verificationMaterial
  if (publicKey === undefined && chain === undefined) {
    throw new BundleError('has neither a key nor a chain of certificates; keyless ones of Sigstore are not supported')
  }
  const bytesOf = (text = '') => Buffer.from(text, 'base64')
  return {
    payload: bytesOf(dsseEnvelope.payload),
    signature: bytesOf(dsseEnvelope.signatures[0]?.sig),
    keyHint: chain === undefined ? publicKey?.hint ?? '' : undefined,
    certificates: chain?.certificates.map(({ rawBytes }) => bytesOf(rawBytes)) ?? []
  }
}

/** Formats a bundle as the text of a signature file. */
export function formatBundle ({ payload, signature, keyHint, certificates }: Bundle): string {
  const chain = { certificates: certificates.map((der) => ({ rawBytes: der.toString('base64') })) }
  const signer = keyHint === undefined ? { x509CertificateChain: chain } : { publicKey: { hint: keyHint } }
  const signatures = [{ sig: signature.toString('base64'), keyid: '' }]
  return `${JSON.stringify({
    mediaType: MEDIA_TYPE,
    verificationMaterial: { ...signer, tlogEntries: [] },
    dsseEnvelope: { payload: payload.toString('base64'), payloadType: PAYLOAD_TYPE, signatures }
  })}\n`
}

/** @throws BundleError if the statement is not a list of whole files */
export function parseStatement (payload: Buffer): SignedFiles {
  const what = 'does not list files by SHA-256 as OpenSSF Model Signing 1.0 does: sign the skill anew, by whole files'
  const { predicate: { serialization, resources } } = parseJson(payload, StatementSchema, what)
  const digests = new Map(resources.map(({ name, digest }) => [name, `${DIGEST_PREFIX}${digest}`]))
  if (digests.size !== resources.length) throw new BundleError('lists a file twice')
  return { digests, leftOut: serialization.ignore_paths ?? [] }
}

/**
 * Creates the statement about all files of a manifest but the signature and NEVER_SIGNED. Of a symbolic link, the bytes
 * that it leads to are signed. Returns undefined if no file is left.
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

/** @throws BundleError with `sentence` if it is not JSON of this shape; unknown keys are ignored */
function parseJson<Schema extends TSchema> (bytes: Buffer, schema: Schema, sentence: string): Static<Schema> {
  try {
    return Value.Decode(schema, JSON.parse(bytes.toString('utf8')))
  } catch (error) {
    throw new BundleError(sentence, { cause: error })
  }
}
