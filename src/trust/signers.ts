import { createHash, type KeyObject, verify, X509Certificate } from 'node:crypto'
import { promisify } from 'node:util'
import { type Bundle, BundleError, signedBytes } from './bundle.ts'

type Certificates = readonly X509Certificate[]

/** Somebody whose signatures count. */
export interface Signer {
  readonly name: string
  /** A key of the signer's, or the certificates that a signer's certificate must descend from. */
  readonly key?: KeyObject
  readonly roots?: Certificates
  /** Whether a signature stays good after the certificate has expired. */
  readonly acceptsExpired: boolean
}

/** The known signer who made a signature. Times in milliseconds since 1970. */
export interface Identity {
  readonly signer: Signer
  readonly validFrom: number
  readonly validTo: number
}

/** Extended key usage: code signing, and any. */
const SIGNING_USAGES = ['1.3.6.1.5.5.7.3.3', '2.5.29.37.0']

/** The hash belongs to the curve (Sigstore's registry of algorithms). */
const HASHES: Readonly<Record<string, string>> = { prime256v1: 'sha256', secp384r1: 'sha384', secp521r1: 'sha512' }

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

const verifyAsync = promisify<string, Buffer, KeyObject, Buffer, boolean>(verify)

/** The hash for signatures of a key; undefined for a key of another kind. */
export function hashOf ({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | undefined {
  return asymmetricKeyType === 'ec' ? HASHES[asymmetricKeyDetails?.namedCurve ?? ''] : undefined
}

/** The certificates in a text of PEM. Throws for a text without any. */
export function certificatesIn (text: string): Certificates {
  return (text.match(CERTIFICATE) ?? ['']).map((pem) => new X509Certificate(pem))
}

/** What bundles call a key. */
export function hintOf (publicKey: KeyObject): string {
  return createHash('sha256').update(publicKey.export({ type: 'spki', format: 'pem' })).digest('hex')
}

/**
 * Whose signature a bundle has; undefined for somebody who is not among the signers.
 * @throws BundleError when the signature does not fit its statement
 */
export async function identify (bundle: Bundle, signers: readonly Signer[]): Promise<Identity | undefined> {
  const { keyHint: hint, certificates } = bundle
  const [leaf, ...others] = parseCertificates(certificates)
  for (const signer of signers) {
    const chain = leaf && signer.roots && findChain(leaf, others, signer.roots)
    const isHinted = signer.key !== undefined && (hint === '' || hint === hintOf(signer.key))
    const key = isHinted ? signer.key : chain && leaf?.publicKey
    if (key === undefined) continue
    if (leaf?.keyUsage?.some((usage) => SIGNING_USAGES.includes(usage)) === false) {
      throw new BundleError('was made with a certificate that is not one for signing code')
    }
    if (await isSignedBy(bundle, key)) {
      return {
        signer,
        validFrom: Math.max(-Infinity, ...(chain ?? []).map(({ validFrom }) => Date.parse(validFrom))),
        validTo: Math.min(Infinity, ...(chain ?? []).map(({ validTo }) => Date.parse(validTo)))
      }
    }
    // A signer without a hint may have signed it with another key.
    if (hint !== '') throw new BundleError('does not belong to the list of files that it comes with')
  }
  return undefined
}

function parseCertificates (certificates: readonly Buffer[]): Certificates {
  try {
    return certificates.map((der) => new X509Certificate(der))
  } catch (error) {
    throw new BundleError('has a certificate that cannot be read', { cause: error })
  }
}

/** From the leaf to one of the roots, through each certificate of a bundle once at most. */
function findChain (leaf: X509Certificate, others: Certificates, roots: Certificates): Certificates | undefined {
  const has = (certificates: Certificates, { fingerprint256 }: X509Certificate): boolean =>
    certificates.some((each) => each.fingerprint256 === fingerprint256)
  const chain = [leaf]
  for (let last = leaf; ;) {
    if (has(roots, last)) return chain
    const root = roots.find((each) => isIssued(last, each))
    if (root !== undefined) return [...chain, root]
    const next = others.find((other) => !has(chain, other) && isIssued(last, other))
    if (next === undefined) return undefined
    chain.push(next)
    last = next
  }
}

function isIssued (certificate: X509Certificate, issuer: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
}

async function isSignedBy ({ payload, signature }: Bundle, key: KeyObject): Promise<boolean> {
  const hash = hashOf(key)
  if (hash === undefined) throw new BundleError('was made with a kind of key that is not supported')
  try {
    return await verifyAsync(hash, signedBytes(payload), key, signature)
  } catch {
    return false
  }
}
