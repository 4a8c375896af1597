import type { TrustStatus, TrustSubject } from '../core/content/trust/trust-policy.ts'
import { quoteList } from '../core/format/findings.ts'
import { BundleError, MAX_SIGNATURE_BYTES, parseBundle, SIGNATURE_FILE } from './bundle.ts'
import { type Identity, identify, type Signer } from './signers.ts'
import { parseStatement, type SignedFiles } from './statement.ts'

/** The result of checking the signature of one state of a skill; it does not depend on the time. */
export interface SignatureResult {
  readonly status: Exclude<TrustStatus, 'expired' | 'denied'>
  /** Of a signature that holds for the list of files that it comes with. */
  readonly identity: Identity | undefined
  /** One sentence that says what is wrong, without a full stop. */
  readonly problem: string
}

/** Checks the signature of a skill. Throws for nothing that a skill contains. */
export async function checkSignature (subject: TrustSubject, signers: readonly Signer[]): Promise<SignatureResult> {
  const { manifest, read } = subject
  const file = manifest.files.find(({ path }) => path === SIGNATURE_FILE)
  if (file === undefined) return { status: 'unsigned', identity: undefined, problem: `the skill has no signature (${SIGNATURE_FILE})` }
  let identity: Identity | undefined
  try {
    if (file.size_bytes > MAX_SIGNATURE_BYTES) throw new BundleError(`is larger than ${MAX_SIGNATURE_BYTES} bytes`)
    const bundle = parseBundle(await read(SIGNATURE_FILE, MAX_SIGNATURE_BYTES))
    identity = await identify(bundle, signers)
    if (identity === undefined) return { status: 'untrusted', identity, problem: 'the skill is signed by somebody who is not in the trust file' }
    const difference = compare(subject, parseStatement(bundle.payload))
    if (difference !== undefined) return { status: 'stale', identity, problem: `${difference} after ${identity.signer.name} signed the skill` }
    return { status: 'valid', identity, problem: '' }
  } catch (error) {
    if (!(error instanceof BundleError)) throw error
    return { status: 'invalid', identity, problem: `the signature ${error.message}` }
  }
}

/** What is different from what was signed, in words; undefined when nothing is. */
function compare ({ manifest: { files }, hasLinks }: TrustSubject, { digests, allowsLinks, leftOut }: SignedFiles): string | undefined {
  const others = files.filter(({ path }) => path !== SIGNATURE_FILE)
  const paths = new Set(others.map(({ path }) => path))
  const changed = others.filter(({ path, digest }) => digests.has(path) && digests.get(path) !== digest).map(({ path }) => path)
  const added = others.filter(({ path }) => !digests.has(path)).map(({ path }) => path)
  const removed = [...digests.keys()].filter((path) => !paths.has(path))
  if (changed.length > 0) return `${quoteList(changed)} changed`
  if (added.length > 0) return `${quoteList(added)} ${added.some((path) => isLeftOut(path, leftOut)) ? 'was left out of the signature, or came' : 'came'}`
  if (removed.length > 0) return `${quoteList(removed)} went away, or became a file that is never served,`
  return hasLinks && !allowsLinks ? 'a file became a symbolic link' : undefined
}

function isLeftOut (path: string, leftOut: readonly string[]): boolean {
  return leftOut.some((each) => path === each || path.startsWith(`${each}/`))
}
