import { reasonOf } from '../config/files/files.ts'
import { quote } from '../config/setting.ts'
import type { FindingCode } from '../core/format/findings.ts'
import type { SkillState } from '../core/revisions/state.ts'
import { SkillError } from '../core/shared/errors.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import { finding } from './findings.ts'
import type { Policy, Verdict } from './policy.ts'

/** Findings about files that a revision leaves out because this process cannot read them, though another may. */
const UNREAD: ReadonlySet<string> = new Set<FindingCode>([
  'file_unreadable', 'file_path_too_long', 'main_file_permission_denied', 'main_file_unreadable', 'ignore_file_unusable'
])

/** What a policy says of some skills, which have to be signed. */
export async function verifySkills (
  skills: SkillManager, names: readonly string[], policy: Policy
): Promise<ReadonlyMap<string, Verdict>> {
  const verdicts = new Map<string, Verdict>()
  for (const name of names) {
    verdicts.set(name, await skills.read(name, (state) => policy.check(state, true)).catch((error: unknown) => {
      if (error instanceof SkillError) return unchecked(error)
      throw error
    }))
  }
  return verdicts
}

/** The verdict on a skill that could not be checked. */
export function unchecked (error: unknown): Verdict {
  const fix = 'Make all files of the skill readable, and remove what agents do not need'
  const findings = [finding('trust_unchecked', `the skill could not be checked: ${reasonOf(error)}`, fix)]
  const report = { signed: false, signer: null, status: null, checked_revision: '', pinned: null }
  return { isServed: false, report, findings, files: [], revision: '' }
}

/** What the revision of a skill lacks, as a sentence: nobody approves or signs what nobody could read. */
export async function unreadPart (state: Pick<SkillState, 'skill' | 'snapshot'>): Promise<string | undefined> {
  const findings = [...state.skill.findings, ...(await state.snapshot()).findings]
  const unread = findings.find(({ code }) => UNREAD.has(code))
  return unread?.code === 'file_unreadable' ? `${quote(unread.file ?? '')} may not be read` : unread?.message
}
