import type { FileContent } from '../content/file-content.ts'
import { finding, quote } from '../format/findings.ts'
import { isMapping, locateFrontmatter } from '../format/frontmatter.ts'
import { MAX_COMPATIBILITY_CODE_POINTS, MAX_MCP_LISTED_FILES, MAX_TEXT_FILE_BYTES, MCP_ADVISED_SKILL_BYTES, MCP_ADVISED_SKILL_FILES } from '../limits.ts'
import type { Manifest } from '../content/manifest.ts'
import type { CatalogSkill, Finding, Frontmatter } from '../skill.ts'
import { countCodePoints } from '../text.ts'
import { findLooseYaml } from './strict-yaml.ts'

const STRICT_OPENING = /^(?:\ufeff)?---\r?\n/

/**
 * Why a skill is not in the `skills/list` of the MCP door: each finding of severity `warning` is a reason; one of
 * severity `info` says that hosts may decline the skill although it is listed. The rules are those of the Agent Skills
 * format as the official client applies them: it throws away a whole listing for one entry that breaks them, and a
 * skill whose frontmatter it reads otherwise than the server. Pure; the three arguments are of one state of the skill.
 *
 * @param document the main file
 */
export function mcpFindings (skill: CatalogSkill, manifest: Manifest, document: FileContent): readonly Finding[] {
  return [
    ...checkValid(skill),
    ...checkFields(skill.frontmatter),
    ...checkYaml(skill, document),
    ...checkFiles(manifest)
  ]
}

/** Whether a skill with these findings is in the listing. */
export function isListedInMcp (findings: readonly Finding[]): boolean {
  return findings.every(({ severity }) => severity === 'info')
}

function checkValid ({ valid, findings }: CatalogSkill): Finding[] {
  if (valid) return []
  const first = findings.find(({ severity }) => severity === 'error')
  return [finding('mcp_skill_invalid', `MCP does not list the skill: ${first?.message ?? 'it is not valid'}`,
    first?.fix ?? 'Mend the errors of the skill')]
}

function checkFields (frontmatter: Frontmatter): Finding[] {
  const found: Finding[] = []
  const compatibility = own(frontmatter, 'compatibility')
  if (compatibility !== undefined && !isShortText(compatibility)) {
    found.push(finding('mcp_compatibility_refused',
      `MCP does not list the skill: compatibility is not text of 1 to ${MAX_COMPATIBILITY_CODE_POINTS} characters`,
      'Write compatibility as one short sentence, or remove it', 'compatibility'))
  }
  const metadata = own(frontmatter, 'metadata')
  if (metadata !== undefined && !(isMapping(metadata) && Object.values(metadata).every((value) => typeof value === 'string'))) {
    found.push(finding('mcp_metadata_refused', 'MCP does not list the skill: metadata is not a mapping of text to text',
      "Write metadata as indented lines of the form 'key: value', with values in double quotes", 'metadata'))
  }
  return found
}

/** A frontmatter that could not be read at all has been reported as invalid. */
function checkYaml ({ valid, findings, frontmatter }: CatalogSkill, { bytes, utf8 }: FileContent): Finding[] {
  const problem = valid ? yamlProblem(findings, frontmatter, bytes, utf8) : undefined
  if (problem === undefined) return []
  return [finding('mcp_yaml_refused', `MCP does not list the skill: the frontmatter has ${problem}, which clients do not read`,
    "Write the frontmatter as lines of the form 'field: value', with special text in double quotes on one line")]
}

function yamlProblem (findings: readonly Finding[], frontmatter: Frontmatter, bytes: Buffer, utf8: string | undefined): string | undefined {
  const location = locateFrontmatter(bytes)
  if (location.kind !== 'found' || utf8 === undefined || !STRICT_OPENING.test(utf8)) return "a first line other than '---'"
  if (findings.some(({ code }) => code === 'yaml_repaired')) return 'text that is not valid YAML'
  return findLooseYaml(bytes.toString('utf8', location.start, location.end)) ?? (isJson(frontmatter) ? undefined : 'values that JSON does not have')
}

function checkFiles ({ files }: Manifest): Finding[] {
  const found: Finding[] = []
  if (!files.some(({ path }) => path === 'SKILL.md')) {
    found.push(finding('mcp_main_file_casing', 'MCP does not list the skill: its main file is not called SKILL.md', 'Rename the main file to SKILL.md'))
  }
  const large = files.find(({ size_bytes: size }) => size > MAX_TEXT_FILE_BYTES)
  if (large !== undefined) {
    found.push(finding('mcp_file_too_large',
      `MCP does not list the skill: ${quote(large.path)} has ${large.size_bytes} bytes, more than the ${MAX_TEXT_FILE_BYTES} that it sends`,
      'Move large files out of the skill, or split them'))
  }
  if (files.length > MAX_MCP_LISTED_FILES) {
    found.push(finding('mcp_too_many_files',
      `MCP does not list the skill: it has ${files.length} files, more than ${MAX_MCP_LISTED_FILES}`, 'Split the skill, or remove files'))
  }
  const bytes = files.reduce((sum, { size_bytes: size }) => sum + size, 0)
  if (files.length > MCP_ADVISED_SKILL_FILES || bytes > MCP_ADVISED_SKILL_BYTES) {
    found.push(finding('mcp_limits_exceeded',
      `the skill has ${files.length} files and ${bytes} bytes; MCP hosts may decline more than ${MCP_ADVISED_SKILL_FILES} files or ${MCP_ADVISED_SKILL_BYTES} bytes`,
      'Split the skill, or remove files'))
  }
  return found
}

/** Of clients, `null` is a value and not an absent one. */
function own (frontmatter: Frontmatter, field: string): unknown {
  return Object.hasOwn(frontmatter, field) ? frontmatter[field] : undefined
}

function isShortText (value: unknown): boolean {
  return typeof value === 'string' && value !== '' && countCodePoints(value) <= MAX_COMPATIBILITY_CODE_POINTS
}

/** Whether JSON says the same: no infinity, no minus zero, no lone surrogates. */
function isJson (value: unknown): boolean {
  switch (typeof value) {
    case 'string': return value.isWellFormed()
    case 'number': return Number.isFinite(value) && !Object.is(value, -0)
    case 'boolean': return true
    case 'object': return value === null || (Array.isArray(value) ? value : Object.entries(value).flat()).every(isJson)
    default: return false
  }
}
