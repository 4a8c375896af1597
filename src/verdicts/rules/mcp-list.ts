import { SkillCatalogError, skillEntry } from '@modelcontextprotocol/server/ext/skills'
import { locateFrontmatter } from '../../core/format/fences.ts'
import { isUsable, preventsUse } from '../../core/format/findings.ts'
import type { FileContent } from '../../core/read/file-content.ts'
import { MAX_TEXT_FILE_BYTES } from '../../core/shared/limits.ts'
import type { CatalogSkill, FileList, Finding, Frontmatter } from '../../core/shared/skill.ts'
import { printable, quote } from '../../core/shared/text.ts'
import { MAX_LOG_LINE_CHARACTERS } from '../../tools/limits.ts'
import { finding, type FindingCode } from '../findings.ts'
import { MAX_MCP_LISTED_FILES, MCP_ADVISED_SKILL_BYTES, MCP_ADVISED_SKILL_FILES } from '../limits.ts'

export interface Eligibility {
  /** As the official client reads it; undefined for a skill that is not listed. */
  readonly frontmatter: Frontmatter | undefined
  /** Reasons why the skill is not listed; `mcp_limits_exceeded` says that hosts may decline a skill that is listed. */
  readonly findings: readonly Finding[]
}

/** Where the SDK's sentence says that the mistake is. */
const LINE_OF_PROBLEM = /\bline (\d{1,7}):/

const NOT_LISTED = 'MCP does not list the skill'

/**
 * Whether a skill is in `skills/list`, and why not. The official SDK decides on a main file: its client throws
 * away a whole listing for one entry that it refuses. Invalid skills are not put before it, so that it never reads a
 * frontmatter of more than MAX_FRONTMATTER_BYTES. The three arguments are of one state of the skill.
 *
 * @param mainFile its content
 */
export async function checkEligibility (
  skill: CatalogSkill, manifest: FileList, mainFile: FileContent
): Promise<Eligibility> {
  const { frontmatter, findings } = isUsable(skill) ? await readAsClient(skill, mainFile) : reportInvalid(skill)
  const reasons = [...findings, ...checkFiles(manifest)]
  return {
    frontmatter: reasons.length === 0 ? frontmatter : undefined, findings: [...reasons, ...adviseOnSize(manifest)]
  }
}

/** The body says nothing to the SDK, which would decode and hash it. */
async function readAsClient ({ name, findings }: CatalogSkill, { bytes }: FileContent): Promise<Eligibility> {
  try {
    const { frontmatter } = await skillEntry(
      name, { 'SKILL.md': bytes.subarray(0, locateFrontmatter(bytes).bodyStart) }
    )
    return { frontmatter, findings: [] }
  } catch (error) {
    const problems = error instanceof SkillCatalogError ? error.problems.map(({ message }) => message) : []
    const reason = problems.join('; ') || 'its SKILL.md cannot be read'
    const line = Number(LINE_OF_PROBLEM.exec(reason)?.[1] ?? 1)
    const prefixed = findings.find(({ code }) => code === 'name_prefixed')
    return refused(finding('mcp_refused', `${NOT_LISTED}: ${printable(reason).slice(0, MAX_LOG_LINE_CHARACTERS)}`,
      prefixed?.fix ?? 'Write the frontmatter as the Agent Skills format has it: values of metadata as text, special ' +
      'text in double quotes on one line', undefined, { line, column: 1 }))
  }
}

function reportInvalid ({ findings }: CatalogSkill): Eligibility {
  const first = findings.find(preventsUse)
  return refused(finding('mcp_skill_invalid', `${NOT_LISTED}: ${first?.message ?? 'it is not valid'}`, first?.fix ??
    'Fix the errors of the skill'))
}

function refused (reason: Finding): Eligibility {
  return { frontmatter: undefined, findings: [reason] }
}

/** What MCP asks beyond the SDK: every file that is listed can be read, and an entry is of bounded length. */
function checkFiles ({ files }: FileList): Finding[] {
  const found: Finding[] = []
  const add = (code: FindingCode, reason: string, fix: string, file?: string): void => {
    found.push({ ...finding(code, `${NOT_LISTED}: ${reason}`, fix), ...file !== undefined && { file } })
  }
  if (!files.some(({ path }) => path === 'SKILL.md')) {
    add('mcp_main_file_casing', 'its main file is not called SKILL.md', 'Rename the main file to SKILL.md')
  }
  const large = files.find(({ size_bytes: size }) => size > MAX_TEXT_FILE_BYTES)
  if (large !== undefined) {
    const reason =
      `${quote(large.path)} has ${large.size_bytes} bytes, more than the ${MAX_TEXT_FILE_BYTES} that it sends`
    add('mcp_file_too_large', reason, 'Move large files out of the skill, or split them', large.path)
  }
  if (files.length > MAX_MCP_LISTED_FILES) {
    const reason = `it has ${files.length} files, more than ${MAX_MCP_LISTED_FILES}`
    add('mcp_too_many_files', reason, 'Split the skill, or remove files')
  }
  return found
}

function adviseOnSize ({ files }: FileList): Finding[] {
  const bytes = files.reduce((sum, { size_bytes: size }) => sum + size, 0)
  if (files.length <= MCP_ADVISED_SKILL_FILES && bytes <= MCP_ADVISED_SKILL_BYTES) return []
  const limit = `${MCP_ADVISED_SKILL_FILES} files or ${MCP_ADVISED_SKILL_BYTES} bytes`
  return [finding('mcp_limits_exceeded',
    `the skill has ${files.length} files and ${bytes} bytes; MCP hosts may decline more than ${limit}`,
    'Split the skill, or remove files')]
}
