import { quoteList } from '../core/format/findings.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { TrustStatus } from '../schemas/trust.ts'
import type { ManifestFile } from '../core/shared/skill.ts'
import { BundleError, MAX_SIGNATURE_BYTES, parseBundle, SIGNATURE_FILE } from './bundle.ts'
import { type Identity, identify, type Signer } from './signers.ts'
import { parseStatement, type SignedFiles } from './statement.ts'

/** The result of checking the signature of one state of a skill. */
export interface SignatureResult {
  readonly status: Exclude<TrustStatus, 'denied'>
  /** Of a signature that holds for the list of files that it comes with. */
  readonly identity?: Identity | undefined
  /** One sentence that says what is wrong, without a full stop. */
  readonly problem: string
  /** Files that the signature leaves out, and whose bytes it says nothing about. */
  readonly exempt: readonly string[]
}

/** Checks the signature of a skill, whatever the time is. Throws for nothing that a skill contains. */
export async function checkSignature (state: SkillState, signers: readonly Signer[]): Promise<SignatureResult> {
  const resultOf = (status: SignatureResult['status'], problem: string, identity?: Identity): SignatureResult =>
    ({ status, identity, problem, exempt: [] })
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
      return resultOf('untrusted', 'the skill is signed by somebody who is not in the trust file')
    }
    const signed = parseStatement(bundle.payload)
    const others = files.filter(({ path }) => path !== SIGNATURE_FILE)
    const covered = others.filter((file) => !isExempt(file, signed))
    const difference = compare(covered, signed)
    if (difference !== undefined) {
      return resultOf('stale', `${difference} after ${identity.signer.name} signed the skill`, identity)
    }
    const exempt = others.filter((file) => isExempt(file, signed)).map(({ path }) => path)
    return { status: 'valid', identity, problem: '', exempt }
  } catch (error) {
    if (!(error instanceof BundleError)) throw error
    return resultOf('invalid', `the signature ${error.message}`, identity)
  }
}

/** What is different from what was signed, in words; undefined when nothing is. */
function compare (covered: readonly ManifestFile[], { digests }: SignedFiles): string | undefined {
  const paths = new Set(covered.map(({ path }) => path))
  const changed = covered.filter(({ path, digest }) => digests.has(path) && digests.get(path) !== digest)
  const added = covered.filter(({ path }) => !digests.has(path))
  const removed = [...digests.keys()].filter((path) => !paths.has(path))
  if (changed.length > 0) return `${quoteList(changed.map(({ path }) => path))} changed`
  if (added.length > 0) return `${quoteList(added.map(({ path }) => path))} came`
  return removed.length > 0 ? `${quoteList(removed)} went away, or became a file that is never served,` : undefined
}

function isExempt ({ path }: ManifestFile, { digests, leftOut }: SignedFiles): boolean {
  return !digests.has(path) && leftOut.some((each) => path === each || path.startsWith(`${each}/`))
}
