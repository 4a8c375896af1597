import { quoteList } from '../core/format/findings.ts'
import { quote } from '../core/shared/text.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { TrustStatus } from '../schemas/trust.ts'
import type { ManifestFile } from '../core/shared/skill.ts'
import {
  type Bundle, BundleError, MAX_SIGNATURE_BYTES, parseBundle, parseStatement, SIGNATURE_FILE, type SignedFiles
} from './bundle.ts'
import { type Identity, identify, leafOf, type Signer } from './signers.ts'

/** The result of checking the signature of one state of a skill. */
export interface SignatureResult {
  readonly status: Exclude<TrustStatus, 'denied'>
  /** The signer, if the signature matches the list of files in it. */
  readonly identity?: Identity | undefined
  /** Sentence that says what is wrong, without a full stop; empty if nothing is. */
  readonly problem: string
  /** Files of the skill that the signature does not cover. */
  readonly exempt: readonly string[]
  /** The known signers at the time of the check. */
  readonly signers: readonly Signer[]
}

/** Checks the signature of a skill, without regard to time. Does not throw for anything that a skill contains. */
export async function checkSignature (state: SkillState, signers: readonly Signer[]): Promise<SignatureResult> {
  const resultOf = (status: SignatureResult['status'], problem: string, identity?: Identity): SignatureResult =>
    ({ status, identity, problem, exempt: [], signers })
  const { files } = await state.manifest()
  const signature = files.find(({ path }) => path === SIGNATURE_FILE)
  if (signature === undefined) return resultOf('unsigned', `the skill has no signature (${SIGNATURE_FILE})`)
  let identity: Identity | undefined
  try {
    if (signature.size_bytes > MAX_SIGNATURE_BYTES) {
      throw new BundleError(`is larger than ${MAX_SIGNATURE_BYTES} bytes`)
    }
    const bundle = parseBundle((await state.file(SIGNATURE_FILE)).bytes)
    identity = await identify(bundle, signers)
    if (identity === undefined) {
      const problem = `the skill is signed by somebody who is not in the trust file${describeCertificate(bundle)}`
      return resultOf('untrusted', problem)
    }
    const { difference, exempt } = compare(files, parseStatement(bundle.payload))
    if (difference === undefined) return { status: 'valid', identity, problem: '', exempt, signers }
    return resultOf('stale', `${difference} after ${identity.signer.name} signed the skill`, identity)
  } catch (error) {
    if (!(error instanceof BundleError)) throw error
    return resultOf('invalid', `the signature ${error.message}`, identity)
  }
}

/** Names the issuer of a certificate, which the trust file would have to have. */
function describeCertificate (bundle: Bundle): string {
  const leaf = leafOf(bundle)
  if (leaf === undefined) return ''
  const [owner, issuer] = [leaf.subject, leaf.issuer].map((name) => quote(name.replaceAll('\n', ', ').slice(0, 200)))
  return `: the certificate of ${owner} was issued by ${issuer}`
}

/** Compares files with the signed ones. Returns a difference in words, and the files that were not signed. */
function compare (
  files: readonly ManifestFile[], { digests, leftOut }: SignedFiles
): { readonly difference: string | undefined, readonly exempt: readonly string[] } {
  const present = new Map(files.map(({ path, digest }) => [path, digest]))
  present.delete(SIGNATURE_FILE)
  const isExempt = (path: string): boolean => leftOut.some((each) => path === each || path.startsWith(`${each}/`))
  const signed = [...digests.keys()]
  const unsigned = [...present.keys()].filter((path) => !digests.has(path))
  const removed = signed.filter((path) => !present.has(path))
  const changed = signed.filter((path) => present.has(path) && present.get(path) !== digests.get(path))
  const added = unsigned.filter((path) => !isExempt(path))
  const [paths, what = ''] = ([
    [changed, 'changed'], [added, 'was added'], [removed, 'was removed, or is now hidden,']
  ] as const).find(([paths]) => paths.length > 0) ?? []
  return { difference: paths && `${quoteList(paths)} ${what}`, exempt: unsigned.filter(isExempt) }
}
