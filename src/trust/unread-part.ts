import type { SkillState } from '../core/content/skill-state.ts'
import type { FindingCode } from '../core/format/findings.ts'
import { quote } from '../operator/setting.ts'

/** What is left out of a revision because this process may not read it, and another may. */
const UNREAD: ReadonlySet<string> = new Set<FindingCode>(['file_unreadable', 'main_file_permission_denied', 'main_file_unreadable', 'ignore_file_unusable'])

/** What the revision of a skill lacks, as a sentence without a full stop: nobody approves or signs what nobody could read. */
export async function unreadPart (state: Pick<SkillState, 'skill' | 'fileFindings'>): Promise<string | undefined> {
  const findings = [...state.skill.findings, ...await state.fileFindings()]
  const unread = findings.find(({ code }) => UNREAD.has(code))
  return unread?.code === 'file_unreadable' ? `${quote(unread.file ?? '')} may not be read` : unread?.message
}
