import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { type FindingCode, quoteList } from '../core/format/findings.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { TrustStatus } from '../core/shared/origin.ts'
import { foldersAbove } from '../core/shared/paths.ts'
import type { Manifest } from '../core/shared/skill.ts'
import { BundleError, MAX_SIGNATURE_BYTES, parseBundle, SIGNATURE_FILE } from './bundle.ts'
import { type Identity, identify, type Signer } from './signers.ts'
import { parseStatement, type SignedFiles } from './statement.ts'

/** One state of a skill, for a policy. */
export interface TrustSubject {
  readonly manifest: Manifest
  /** Whether a file of the skill, or one that was left out of the manifest, is a symbolic link. */
  hasLinks (): Promise<boolean>
  /** Bytes of a file of the manifest. Rejects when the file has other bytes by now. */
  read (path: string): Promise<Buffer>
}

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

const FOREIGN = 'the skill is signed by somebody who is not in the trust file'

const LINKS: ReadonlySet<string> = new Set<FindingCode>(['link_outside', 'link_to_folder'])

export async function subjectOf (state: Pick<SkillState, 'skill' | 'snapshot' | 'file'>): Promise<TrustSubject> {
  const { manifest, findings } = await state.snapshot()
  return {
    manifest,
    read: async (path) => (await state.file(path)).bytes,
    async hasLinks () {
      if (findings.some(({ code }) => LINKS.has(code))) return true
      const paths = new Set(manifest.files.flatMap(({ path }) => [path, ...foldersAbove(path)]))
      for (const path of paths) {
        const stats = await lstat(join(state.skill.metadata.skillPath, path)).catch(() => undefined)
        if (stats?.isSymbolicLink() === true) return true
      }
      return false
    }
  }
}

/** Checks the signature of a skill. Throws for nothing that a skill contains. */
export async function checkSignature (subject: TrustSubject, signers: readonly Signer[]): Promise<SignatureResult> {
  const resultOf = (status: SignatureResult['status'], problem: string, identity?: Identity): SignatureResult =>
    ({ status, identity, problem, exempt: [] })
  const file = subject.manifest.files.find(({ path }) => path === SIGNATURE_FILE)
  if (file === undefined) return resultOf('unsigned', `the skill has no signature (${SIGNATURE_FILE})`)
  let identity: Identity | undefined
  try {
    if (file.size_bytes > MAX_SIGNATURE_BYTES) throw new BundleError(`is larger than ${MAX_SIGNATURE_BYTES} bytes`)
    const bundle = parseBundle(await subject.read(SIGNATURE_FILE))
    identity = await identify(bundle, signers)
    if (identity === undefined) return resultOf('untrusted', FOREIGN)
    const signed = parseStatement(bundle.payload)
    const exempt = exemptFiles(subject, signed)
    const difference = await compare(subject, signed, new Set(exempt))
    if (difference === undefined) return { status: 'valid', identity, problem: '', exempt }
    return resultOf('stale', `${difference} after ${identity.signer.name} signed the skill`, identity)
  } catch (error) {
    if (!(error instanceof BundleError)) throw error
    return resultOf('invalid', `the signature ${error.message}`, identity)
  }
}

/** What is different from what was signed, in words; undefined when nothing is. */
async function compare (
  subject: TrustSubject, { digests, allowsLinks }: SignedFiles, exempt: ReadonlySet<string>
): Promise<string | undefined> {
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
