import { createHash, type KeyObject, verify, X509Certificate } from 'node:crypto'
import { isDeepStrictEqual, promisify } from 'node:util'
import { dsse, X509Certificate as ParsedCertificate } from '@sigstore/core'
import { type Bundle, BundleError, PAYLOAD_TYPE } from './bundle.ts'

/** Trusted signer, known by a key or by a certificate. */
export interface Signer {
  /** Equal for signers with equal members. */
  readonly id: string
  readonly name: string
  readonly key?: KeyObject
  /** Certificates of which one issued the signer's certificate, or is it. */
  readonly issuers?: readonly X509Certificate[]
  /** Whether a signature stays good after the certificate has expired. */
  readonly acceptsExpired: boolean
}

/** Signer of a bundle, and the validity of its certificates, in milliseconds since 1970. */
export interface Identity {
  readonly signer: Signer
  readonly validFrom: number
  readonly validTo: number
}

/** Extended key usages for code signing, and for any purpose. */
const SIGNING_USAGES = ['1.3.6.1.5.5.7.3.3', '2.5.29.37.0']

/** Extensions that are checked, or only name the owner: key usage, names, basic constraints, extended key usage. */
const SUPPORTED_EXTENSIONS = ['2.5.29.15', '2.5.29.17', '2.5.29.19', '2.5.29.37']
const NAME_CONSTRAINTS = '2.5.29.30'

/** Hash functions by curve (Sigstore's registry of algorithms). */
const HASHES: Readonly<Record<string, string>> = { prime256v1: 'sha256', secp384r1: 'sha384', secp521r1: 'sha512' }

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

const verifyAsync = promisify<string, Buffer, KeyObject, Buffer, boolean>(verify)

/** Returns the hash function for signatures of a key; undefined for an unsupported kind of key. */
export function hashOf ({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | undefined {
  return asymmetricKeyType === 'ec' ? HASHES[asymmetricKeyDetails?.namedCurve ?? ''] : undefined
}

/** Parses the certificates in a PEM text. Throws if there are none. */
export function certificatesIn (text: string): readonly X509Certificate[] {
  return (text.match(CERTIFICATE) ?? ['']).map((pem) => new X509Certificate(pem))
}

export function createSigner (members: Omit<Signer, 'id'>): Signer {
  const { name, key, issuers = [], acceptsExpired } = members
  const known = key === undefined ? issuers.map(({ fingerprint256 }) => fingerprint256) : hintOf(key)
  return { ...members, id: JSON.stringify([name, acceptsExpired, known]) }
}

export function isSameSigners (a: readonly Signer[] | undefined, b: readonly Signer[]): boolean {
  return a === b || isDeepStrictEqual(a?.map(({ id }) => id), b.map(({ id }) => id))
}

/** The digest by which bundles name a key. */
export function hintOf (publicKey: KeyObject): string {
  return createHash('sha256').update(publicKey.export({ type: 'spki', format: 'pem' })).digest('hex')
}

/**
 * Finds the signer of a bundle; returns undefined if it is not one of `signers`. Follows no chains: the trust file must
 * name the signer's certificate or the one that issued it.
 * @throws BundleError if the signature does not match its statement, or its certificate is not one for signing code
 */
export async function identify (bundle: Bundle, signers: readonly Signer[]): Promise<Identity | undefined> {
  const { keyHint: hint } = bundle
  const leaf = leafOf(bundle)
  for (const signer of signers) {
    const issuer = leaf && signer.issuers?.find((each) =>
      each.fingerprint256 === leaf.fingerprint256 || isIssuedBy(leaf, each))
    const isHinted = signer.key !== undefined && (hint === '' || hint === hintOf(signer.key))
    const key = isHinted ? signer.key : issuer && leaf?.publicKey
    if (key === undefined) continue
    const problem = leaf && certificateProblem(leaf, true)
    if (problem !== undefined) throw new BundleError(`was made with a certificate that ${problem}`)
    if (await isSignedBy(bundle, key)) {
      const certificates = [leaf ?? [], issuer ?? []].flat()
      const validFrom = Math.max(-Infinity, ...certificates.map((each) => Date.parse(each.validFrom)))
      const validTo = Math.min(Infinity, ...certificates.map((each) => Date.parse(each.validTo)))
      return { signer, validFrom, validTo }
    }
    // Without a hint, the next signer may be the one.
    if (hint !== '') {
      throw new BundleError('does not match its list of files: the list was changed, or signed with another key')
    }
  }
  return undefined
}

/** Parses the certificate of a bundle's signer, and ignores those after it. */
export function leafOf ({ certificates: [der] }: Bundle): X509Certificate | undefined {
  try {
    return der && new X509Certificate(der)
  } catch (error) {
    throw new BundleError('has a certificate that cannot be read', { cause: error })
  }
}

/**
 * Returns why a certificate cannot be that of a signer (`isLeaf`) or of its issuer, as the end of a sentence. Refuses
 * conditions that are not evaluated here.
 */
export function certificateProblem (certificate: X509Certificate, isLeaf = false): string | undefined {
  const { extensions, extKeyUsage } = ParsedCertificate.parse(certificate.raw)
  if (isLeaf && extKeyUsage?.digitalSignature === false) return 'lacks the key usage digitalSignature'
  // In Node `keyUsage` is the extended key usage.
  if (certificate.keyUsage?.some((usage) => SIGNING_USAGES.includes(usage)) === false) {
    return 'lacks the extended key usage codeSigning'
  }
  const seen = new Set<string>()
  for (const { subs: [id, critical, value] } of extensions) {
    const name = id?.toOID() ?? ''
    // The criticality is optional: without it, the second member is the value.
    const isCritical = value !== undefined && critical?.toBoolean() === true
    if (seen.has(name)) return `has the extension ${name} twice`
    if (name === NAME_CONSTRAINTS) return 'has name constraints, which are not supported'
    if (isCritical && !SUPPORTED_EXTENSIONS.includes(name)) {
      return `has the critical extension ${name}, which is not supported`
    }
    seen.add(name)
  }
  return undefined
}

/** Whether a certificate authority issued a certificate: checks names, the signature, and that it is an authority. */
function isIssuedBy (certificate: X509Certificate, issuer: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
}

async function isSignedBy ({ payload, signature }: Bundle, key: KeyObject): Promise<boolean> {
  const hash = hashOf(key)
  if (hash === undefined) throw new BundleError('was made with a kind of key that is not supported')
  try {
    return await verifyAsync(hash, dsse.preAuthEncoding(PAYLOAD_TYPE, payload), key, signature)
  } catch {
    return false
  }
}
