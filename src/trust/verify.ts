import { basename } from 'node:path'
import { quote } from '../config/setting.ts'
import type { FindingCode } from '../core/format/findings.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { RootOptions } from '../core/roots/root.ts'
import { SkillError } from '../core/shared/errors.ts'
import type { TrustReport } from '../core/shared/origin.ts'
import type { Finding } from '../core/shared/skill.ts'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from '../core/skill-manager.ts'
import { subjectOf } from './check-signature.ts'
import type { Policy } from './policy.ts'

/** What a policy says of a skill in a folder. */
export interface VerifiedSkill {
  readonly name: string
  /** Undefined for a skill that could not be read: `problem` says why. */
  readonly report: TrustReport | undefined
  readonly isServed: boolean
  readonly findings: readonly Finding[]
  /** One sentence without a full stop; empty for a skill without findings. */
  readonly problem: string
}

/** Findings about files that a revision leaves out because this process cannot read them, though another may. */
const UNREAD: ReadonlySet<string> = new Set<FindingCode>([
  'file_unreadable', 'file_path_too_long', 'main_file_permission_denied', 'main_file_unreadable', 'ignore_file_unusable'
])

/** A folder cannot be read, as one line. */
export class FolderError extends Error {}

/** How a folder is listed: which links lead somewhere, and who learns what is left out. */
export type ListOptions = { readonly [Name in 'linkTargets' | 'onSkipped']?: SkillManagerOptions[Name] | undefined } & {
  /** Receives how many skills were read, and of how many. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined
}

/**
 * What a policy says of all skills of a root.
 * @throws FolderError
 */
export async function verifyRoot (
  root: RootOptions, policy: Policy, options: ListOptions = {}
): Promise<readonly VerifiedSkill[]> {
  const name = root.name ?? basename(root.path)
  return await readRoot(root, options, async (skills) =>
    await verifySkills(skills, await skills.list(), policy, name, options.onProgress))
}

/** What a policy says of some skills of a root. */
export async function verifySkills (
  skills: SkillManager, names: readonly string[], policy: Policy, root: string, onProgress?: ListOptions['onProgress']
): Promise<readonly VerifiedSkill[]> {
  const verified: VerifiedSkill[] = []
  for (const name of names) {
    onProgress?.(verified.length, names.length)
    try {
      const { report, isServed, findings } = await skills.read(name, async (state) =>
        await policy.judge(root, await subjectOf(state)))
      verified.push({ name, report, isServed, findings, problem: findings.map(({ message }) => message).join('; ') })
    } catch (error) {
      if (!(error instanceof SkillError)) throw error
      verified.push({ name, report: undefined, isServed: false, findings: [], problem: error.message })
    }
  }
  return verified
}

/** What the revision of a skill lacks, as a sentence: nobody approves or signs what nobody could read. */
export async function unreadPart (state: Pick<SkillState, 'skill' | 'snapshot'>): Promise<string | undefined> {
  const findings = [...state.skill.findings, ...(await state.snapshot()).findings]
  const unread = findings.find(({ code }) => UNREAD.has(code))
  return unread?.code === 'file_unreadable' ? `${quote(unread.file ?? '')} may not be read` : unread?.message
}

/**
 * What is made of the skills of a root, read once.
 * @throws FolderError
 */
export async function readRoot<T> (
  root: RootOptions, { linkTargets, onSkipped }: ListOptions, use: (skills: SkillManager) => Promise<T>
): Promise<T> {
  const options = { watcher: false, keep: { keepMs: 0 }, linkTargets, onSkipped }
  const skills = createSkillManager({ projectRoots: [root], ...options })
  try {
    await skills.start()
    return await use(skills)
  } catch (error) {
    if (error instanceof SkillError) throw new FolderError(error.message, { cause: error })
    throw error
  } finally {
    await skills.close()
  }
}
