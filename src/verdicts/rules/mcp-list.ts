import { SkillCatalogError, skillEntry } from '@modelcontextprotocol/server/ext/skills'
import { locateFrontmatter } from '../../core/format/fences.ts'
import { preventsUse } from '../../core/format/findings.ts'
import type { FileContent } from '../../core/read/file-content.ts'
import { MAX_TEXT_FILE_BYTES } from '../../core/shared/limits.ts'
import type { CatalogSkill, FileList, Finding, Frontmatter } from '../../core/shared/skill.ts'
import { printable } from '../../core/shared/text.ts'
import { MAX_LOG_LINE_CHARACTERS } from '../../tools/limits.ts'
import { finding, findingOnFiles } from '../findings.ts'
import { MAX_MCP_LISTED_FILES, MCP_ADVISED_SKILL_BYTES, MCP_ADVISED_SKILL_FILES } from '../limits.ts'
import { bytesOf } from '../subject.ts'

export interface Eligibility {
  /** Frontmatter as the official client reads it; undefined for a skill that is not listed. */
  readonly frontmatter: Frontmatter | undefined
  /**
   * Reasons why the skill is not listed, findings of the skill itself among them. `mcp_limits_exceeded` is about a
   * listed skill that hosts may decline.
   */
  readonly findings: readonly Finding[]
}

/** Line of the mistake in a message of the SDK. */
const LINE_OF_PROBLEM = /\bline (\d{1,7}):/

const NOT_LISTED = 'MCP does not list the skill'

/**
 * Checks whether a skill is in `skills/list`, and why not. The official SDK decides on main files, since its client
 * drops a whole listing for one entry that it refuses. Invalid skills are not passed to it, so that it never reads a
 * frontmatter of more than MAX_FRONTMATTER_BYTES. The three arguments must be of one state of the skill.
 */
export async function checkEligibility (
  skill: CatalogSkill, { files }: FileList, mainFile: FileContent
): Promise<Eligibility> {
  const invalid = skill.findings.filter((found) => preventsUse(found) || found.code === 'main_file_casing')
  if (invalid.length > 0) return { frontmatter: undefined, findings: invalid }
  const read = await readAsClient(skill, mainFile)
  const bytes = bytesOf({ files })
  const size = `${files.length} files and ${bytes} bytes`
  const split = 'Split the skill, or remove files'
  const reasons = [
    ...'code' in read ? [read] : [],
    ...findingOnFiles('mcp_file_too_large',
      files.filter(({ size_bytes: each }) => each > MAX_TEXT_FILE_BYTES).map(({ path }) => path),
      `${NOT_LISTED}: files have more than the ${MAX_TEXT_FILE_BYTES} bytes that it sends`,
      'Move large files out of the skill, or split them'),
    ...files.length > MAX_MCP_LISTED_FILES
      ? [finding('mcp_too_many_files', `${NOT_LISTED}: it has ${size}, and at most ${MAX_MCP_LISTED_FILES} files are ` +
        'listed', split)]
      : []
  ]
  if (reasons.length > 0 || 'code' in read) return { frontmatter: undefined, findings: reasons }
  if (files.length <= MCP_ADVISED_SKILL_FILES && bytes <= MCP_ADVISED_SKILL_BYTES) return { ...read, findings: [] }
  const limit = `${MCP_ADVISED_SKILL_FILES} files or ${MCP_ADVISED_SKILL_BYTES} bytes`
  const advice = finding('mcp_limits_exceeded',
    `the skill has ${size}; MCP hosts may decline more than ${limit}`, split)
  return { ...read, findings: [advice] }
}

/** Reads the frontmatter with the SDK, without the body, which the SDK would decode and hash. */
async function readAsClient (
  { name, findings }: CatalogSkill, { bytes }: FileContent
): Promise<{ readonly frontmatter: Frontmatter } | Finding> {
  try {
    return await skillEntry(name, { 'SKILL.md': bytes.subarray(0, locateFrontmatter(bytes).bodyStart) })
  } catch (error) {
    const problems = error instanceof SkillCatalogError ? error.problems.map(({ message }) => message) : []
    const reason = problems.join('; ') || 'its SKILL.md cannot be read'
    const line = Number(LINE_OF_PROBLEM.exec(reason)?.[1] ?? 1)
    const prefixed = findings.find(({ code }) => code === 'name_prefixed')
    return finding('mcp_refused', `${NOT_LISTED}: ${printable(reason).slice(0, MAX_LOG_LINE_CHARACTERS)}`,
      prefixed?.fix ?? 'Write the frontmatter as the Agent Skills format has it: values of metadata as text, special ' +
      'text in double quotes on one line', undefined, { line, column: 1 })
  }
}
