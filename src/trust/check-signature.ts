import { quoteList } from '../core/format/findings.ts'
import type { TrustStatus } from '../core/shared/origin.ts'
import { BundleError, MAX_SIGNATURE_BYTES, parseBundle, SIGNATURE_FILE } from './bundle.ts'
import { type Identity, identify, type Signer } from './signers.ts'
import { parseStatement, type SignedFiles } from './statement.ts'
import type { TrustSubject } from './subject.ts'

/** The result of checking the signature of one state of a skill; it does not depend on the time. */
export interface SignatureResult {
  readonly status: Exclude<TrustStatus, 'expired' | 'denied'>
  /** Of a signature that holds for the list of files that it comes with. */
  readonly identity?: Identity | undefined
  /** One sentence that says what is wrong, without a full stop. */
  readonly problem: string
  /** Files that the signature leaves out, and whose bytes it says nothing about. */
  readonly exempt: readonly string[]
}

const NONE: readonly string[] = []

/** Checks the signature of a skill. Throws for nothing that a skill contains. */
export async function checkSignature (subject: TrustSubject, signers: readonly Signer[]): Promise<SignatureResult> {
  const file = subject.manifest.files.find(({ path }) => path === SIGNATURE_FILE)
  if (file === undefined) return { status: 'unsigned', problem: `the skill has no signature (${SIGNATURE_FILE})`, exempt: NONE }
  let identity: Identity | undefined
  try {
    if (file.size_bytes > MAX_SIGNATURE_BYTES) throw new BundleError(`is larger than ${MAX_SIGNATURE_BYTES} bytes`)
    const bundle = parseBundle(await subject.read(SIGNATURE_FILE))
    identity = await identify(bundle, signers)
    if (identity === undefined) {
      return { status: 'untrusted', problem: 'the skill is signed by somebody who is not in the trust file', exempt: NONE }
    }
    const signed = parseStatement(bundle.payload)
    const difference = await compare(subject, signed)
    if (difference === undefined) return { status: 'valid', identity, problem: '', exempt: exemptFiles(subject, signed) }
    return { status: 'stale', identity, problem: `${difference} after ${identity.signer.name} signed the skill`, exempt: NONE }
  } catch (error) {
    if (!(error instanceof BundleError)) throw error
    return { status: 'invalid', identity, problem: `the signature ${error.message}`, exempt: NONE }
  }
}

/** What is different from what was signed, in words; undefined when nothing is. */
async function compare (subject: TrustSubject, signed: SignedFiles): Promise<string | undefined> {
  const { digests, allowsLinks } = signed
  const exempt = new Set(exemptFiles(subject, signed))
  const covered = subject.manifest.files.filter(({ path }) => path !== SIGNATURE_FILE && !exempt.has(path))
  const paths = new Set(covered.map(({ path }) => path))
  const changed = covered.filter(({ path, digest }) => digests.has(path) && digests.get(path) !== digest)
  const added = covered.filter(({ path }) => !digests.has(path))
  const removed = [...digests.keys()].filter((path) => !paths.has(path))
  if (changed.length > 0) return `${quoteList(changed.map(({ path }) => path))} changed`
  if (added.length > 0) return `${quoteList(added.map(({ path }) => path))} came`
  if (removed.length > 0) return `${quoteList(removed)} went away, or became a file that is never served,`
  return !allowsLinks && await subject.hasLinks() ? 'a file became a symbolic link' : undefined
}

function exemptFiles ({ manifest }: TrustSubject, { digests, leftOut }: SignedFiles): string[] {
  const isLeftOut = (path: string): boolean => leftOut.some((each) => path === each || path.startsWith(`${each}/`))
  const paths = manifest.files.map(({ path }) => path)
  return paths.filter((path) => path !== SIGNATURE_FILE && !digests.has(path) && isLeftOut(path))
}
