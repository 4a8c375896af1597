import { quote } from '../operator/setting.ts'
import type { FindingCode } from '../core/format/findings.ts'
import type { SkillState } from '../core/revisions/state.ts'
import { SkillError } from '../core/shared/errors.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import type { TrustPolicy } from './trust-policy.ts'
import { judge, type PolicyFiles, unchecked, type Verdict } from './verdict.ts'

/** Codes of findings about files that are missing in a revision because this process cannot read them. */
const UNREAD: ReadonlySet<string> = new Set<FindingCode>([
  'file_unreadable', 'file_path_too_long', 'main_file_permission_denied', 'main_file_unreadable', 'ignore_file_unusable'
])

/** Judges some skills as if their root had `require`. */
export async function verifySkills (
  skills: SkillManager, names: readonly string[], policy: TrustPolicy, files: PolicyFiles = policy.files
): Promise<ReadonlyMap<string, Verdict>> {
  const verdicts = new Map<string, Verdict>()
  for (const name of names) {
    const check = async (state: SkillState): Promise<Verdict> =>
      judge(name, await policy.check(state), { ...files, isRequired: true })
    verdicts.set(name, await skills.read(name, check).catch((error: unknown) => {
      if (error instanceof SkillError) return unchecked(error)
      throw error
    }))
  }
  return verdicts
}

/** Describes files that the revision of a skill lacks because they cannot be read: it must not be locked or signed. */
export async function unreadPart (state: Pick<SkillState, 'skill' | 'snapshot'>): Promise<string | undefined> {
  const findings = [...state.skill.findings, ...(await state.snapshot()).findings]
  const unread = findings.find(({ code }) => UNREAD.has(code))
  return unread?.code === 'file_unreadable' ? `permission denied reading ${quote(unread.file ?? '')}` : unread?.message
}
