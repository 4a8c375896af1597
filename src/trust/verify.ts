import { quote } from '../config/setting.ts'
import type { FindingCode } from '../core/format/findings.ts'
import type { SkillState } from '../core/revisions/state.ts'
import { SkillError } from '../core/shared/errors.ts'
import type { TrustReport } from '../schemas/trust.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import type { Policy } from './policy.ts'

/** What a policy says of a skill in a folder. */
export interface VerifiedSkill {
  readonly name: string
  /** Undefined for a skill that could not be read: `problem` says why. */
  readonly report: TrustReport | undefined
  readonly isServed: boolean
  /** One sentence without a full stop; empty for a skill without findings. */
  readonly problem: string
}

/** Findings about files that a revision leaves out because this process cannot read them, though another may. */
const UNREAD: ReadonlySet<string> = new Set<FindingCode>([
  'file_unreadable', 'file_path_too_long', 'main_file_permission_denied', 'main_file_unreadable', 'ignore_file_unusable'
])

/** What a policy says of some skills, which have to be signed. */
export async function verifySkills (
  skills: SkillManager, names: readonly string[], policy: Policy
): Promise<readonly VerifiedSkill[]> {
  const verified: VerifiedSkill[] = []
  for (const name of names) {
    try {
      const { report, isServed, findings } = await skills.read(name, (state) => policy.check(state, true))
      verified.push({ name, report, isServed, problem: findings.map(({ message }) => message).join('; ') })
    } catch (error) {
      if (!(error instanceof SkillError)) throw error
      verified.push({ name, report: undefined, isServed: false, problem: error.message })
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
