import { isJsonObject, own } from '../shared/json.ts'
import { MAX_COMPATIBILITY_CODE_POINTS, MAX_DESCRIPTION_CODE_POINTS, MAX_NAME_CODE_POINTS } from '../shared/limits.ts'
import { nearest } from '../shared/nearest.ts'
import type { Finding, Frontmatter } from '../shared/skill.ts'
import { countCodePoints, quote } from '../shared/text.ts'
import { finding, type FindingCode, quoteList } from './findings.ts'

/** The fields of the Agent Skills format. */
export const KNOWN_FIELDS: ReadonlySet<string> = new Set(
  ['name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools']
)

/** More fields that Claude Code, VS Code or Cursor read. */
const AGENT_FIELDS: ReadonlySet<string> = new Set([
  'when_to_use', 'argument-hint', 'arguments', 'disable-model-invocation', 'user-invocable', 'disallowed-tools',
  'model', 'effort', 'context', 'background', 'agent', 'hooks', 'paths', 'shell'
])

export const NAME_CHARACTERS = /^[a-z0-9-]+$/
export const VALID_NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
export const RESERVED_WORD = /anthropic|claude/
/** Names that YAML 1.1 reads as numbers, dates or truth values. */
const NOT_PLAIN_NAME = /^(?:\d.*|null|true|false|yes|no|on|off|y|n)$/
const OTHER_LETTER = /(?![a-z0-9])[\p{L}\p{N}]/u
export const XML_TAG = /<\/?[A-Za-z][^<>]*>/

/** Checks a frontmatter by the Agent Skills format and Wave's rules. Never throws. */
export function validateFrontmatter (frontmatter: Frontmatter, folderName: string): Finding[] {
  return [
    ...checkName(frontmatter, folderName),
    ...checkDescription(field(frontmatter, 'description')),
    ...checkText('license_not_text', 'license', field(frontmatter, 'license'),
      "Write license as the name of a licence or of a file in the skill's folder"),
    ...checkCompatibility(field(frontmatter, 'compatibility')),
    ...checkMetadata(field(frontmatter, 'metadata')),
    ...checkAllowedTools(field(frontmatter, 'allowed-tools')),
    ...checkUnknownFields(frontmatter)
  ]
}

/** Returns an own field; `null` and `~` count as absent. */
function field (frontmatter: Frontmatter, name: string): unknown {
  return own(frontmatter, name) ?? undefined
}

function isBlank (value: unknown): boolean {
  return value === undefined || (typeof value === 'string' && value.trim() === '')
}

function checkText (code: FindingCode, field: string, value: unknown, fix: string): Finding[] {
  if (value === undefined || typeof value === 'string') return []
  return [finding(code, `${field} must be text, not ${kindOf(value)}`, fix, field)]
}

function checkLength (code: FindingCode, field: string, value: string, max: number, fix?: string): Finding[] {
  const length = countCodePoints(value)
  if (length <= max) return []
  return [finding(code, `${field} has ${length} characters, more than ${max}`,
    fix ?? `Shorten ${field} by at least ${length - max} characters`, field)]
}

function checkName (frontmatter: Frontmatter, folderName: string): Finding[] {
  const name = field(frontmatter, 'name')
  const isWritten = own(frontmatter, 'name') !== undefined
  const fix = nameFix(name, isWritten, folderName)
  if (isBlank(name)) return [finding('name_missing', `name is ${isWritten ? 'empty' : 'missing'}`, fix, 'name')]
  if (typeof name !== 'string') return checkText('name_not_text', 'name', name, fix)

  const found = checkLength('name_too_long', 'name', name, MAX_NAME_CODE_POINTS, fix)
  const add = (code: FindingCode, problem: string): void => {
    found.push(finding(code, `name ${quote(name)} ${problem}`, fix, 'name'))
  }
  if (!NAME_CHARACTERS.test(name)) {
    add('name_invalid_characters', 'must contain only lowercase letters, numbers and hyphens')
  }
  if (name.startsWith('-') || name.endsWith('-')) add('name_edge_hyphen', 'must not start or end with a hyphen')
  if (name.includes('--')) add('name_double_hyphen', 'must not contain two hyphens in a row')
  // A name that breaks a rule has to be changed anyway.
  if (name !== folderName && found.length === 0) {
    add('name_folder_mismatch', `does not match the folder name ${quote(folderName)}`)
  }
  if (found.length === 0 && RESERVED_WORD.test(name)) {
    found.push(finding('name_reserved_word', `name ${quote(name)} contains a word that one provider refuses in uploads`,
      "Choose a name without 'anthropic' and 'claude' if the skill is to be uploaded there", 'name'))
  }
  return found
}

/** Returns one instruction that gives the skill a valid name. */
function nameFix (name: unknown, isWritten: boolean, folderName: string): string {
  // The valid name that needs the fewest changes.
  const target = [folderName, name].find(isValidName) ?? toValidName(folderName)
  if (target === undefined) {
    return 'Choose a name of lowercase letters a to z, numbers and hyphens, and give it to the folder too'
  }
  if (name === target) return `Rename the folder to ${quote(target)}`
  const value = nameAsYaml(target)
  const change = value === target ? `Change name to ${quote(target)}` : `Change the line of name to 'name: ${value}'`
  const rename = target === folderName ? '' : ` and rename the folder to ${quote(target)}`
  return `${isWritten ? change : `Add 'name: ${value}' to the frontmatter`}${rename}`
}

/** Writes a valid name as a value that every reader takes as text. */
export function nameAsYaml (name: string): string {
  return NOT_PLAIN_NAME.test(name) ? JSON.stringify(name) : name
}

export function isValidName (name: unknown): name is string {
  return typeof name === 'string' && name.length <= MAX_NAME_CODE_POINTS && VALID_NAME.test(name)
}

/** Returns undefined where letters would be lost, as for a name in another script. */
function toValidName (text: string): string | undefined {
  const plain = text.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase()
  if (OTHER_LETTER.test(plain)) return undefined
  return plain.match(/[a-z0-9]+/g)?.join('-').slice(0, MAX_NAME_CODE_POINTS).replace(/-$/, '')
}

function checkDescription (description: unknown): Finding[] {
  if (isBlank(description)) {
    return [finding('description_missing', `description is ${description === undefined ? 'missing' : 'empty'}`,
      `Add a description of 1 to ${MAX_DESCRIPTION_CODE_POINTS} characters that says what the skill does and ` +
      'when to use it', 'description')]
  }
  if (typeof description !== 'string') {
    return checkText('description_not_text', 'description', description,
      'Write description as one text in double quotes')
  }
  const found = checkLength('description_too_long', 'description', description, MAX_DESCRIPTION_CODE_POINTS)
  const tag = XML_TAG.exec(description)?.[0]
  if (tag !== undefined) {
    found.push(finding('description_xml_tag', `description contains ${quote(tag)}, which looks like an XML tag`,
      'Write description without angle brackets', 'description'))
  }
  return found
}

function checkCompatibility (compatibility: unknown): Finding[] {
  if (typeof compatibility !== 'string') {
    return checkText('compatibility_not_text', 'compatibility', compatibility, 'Write compatibility as one sentence')
  }
  return compatibility === ''
    ? [finding('compatibility_empty', 'compatibility is empty', 'Remove the field compatibility or fill it in',
        'compatibility')]
    : checkLength('compatibility_too_long', 'compatibility', compatibility, MAX_COMPATIBILITY_CODE_POINTS)
}

function checkMetadata (metadata: unknown): Finding[] {
  if (metadata === undefined) return []
  if (!isJsonObject(metadata)) {
    return [finding('metadata_not_mapping', `metadata must be a mapping of text to text, not ${kindOf(metadata)}`,
      "Write metadata as indented lines of the form 'key: value'", 'metadata')]
  }
  const keys = quoteList(Object.keys(metadata).filter((key) => typeof metadata[key] !== 'string'))
  if (keys === '') return []
  return [finding('metadata_not_text', `metadata has values that are not text: ${keys}`,
    `Put the values of ${keys} in double quotes`, 'metadata')]
}

function checkAllowedTools (tools: unknown): Finding[] {
  const fix = 'Write allowed-tools as one text with a space between two tools'
  if (Array.isArray(tools)) {
    return [finding('allowed_tools_list', 'allowed-tools is a list instead of text', fix, 'allowed-tools')]
  }
  if (typeof tools !== 'string') return checkText('allowed_tools_not_text', 'allowed-tools', tools, fix)
  // Commas in brackets belong to a single tool.
  if (!tools.replaceAll(/\([^()]*\)/g, '').includes(',')) return []
  return [finding('allowed_tools_commas', 'allowed-tools separates its tools with commas instead of spaces', fix,
    'allowed-tools')]
}

function checkUnknownFields (frontmatter: Frontmatter): Finding[] {
  const unknown = Object.keys(frontmatter).filter((name) => !KNOWN_FIELDS.has(name))
  if (unknown.length === 0) return []
  const misspelt = misspeltFields(frontmatter)
  const read = unknown.filter((name) => AGENT_FIELDS.has(name))
  const unread = unknown.filter((name) => !AGENT_FIELDS.has(name) && !misspelt.has(name))
  // Fields that one agent reads are ignored by others.
  const fixes = [
    ...Array.from(misspelt, ([name, field]) => `rename ${quote(name)} to ${quote(field)}`),
    ...unread.length > 0
      ? [`move ${quoteList(unread)} into metadata, or remove ${unread.length === 1 ? 'it' : 'them'}`]
      : [],
    ...read.length > 0 ? [`leave ${quoteList(read)} to the agents that read such fields: others may refuse them`] : []
  ].join('; ')
  return [finding('unknown_fields',
    `the frontmatter has fields that the Agent Skills format does not know: ${quoteList(unknown)}`,
    `${fixes.charAt(0).toUpperCase()}${fixes.slice(1)}`, unknown[0])]
}

/** Returns the field that a misspelt name means. The first letter must be right: `date` does not mean `name`. */
function rightName (name: string, fields: Iterable<string>): string | undefined {
  if (KNOWN_FIELDS.has(name) || AGENT_FIELDS.has(name)) return undefined
  const lower = name.toLowerCase()
  return nearest(lower, [...fields].filter((field) => lower.charAt(0) === field.charAt(0)))
}

/** Returns the misspelt fields of a frontmatter with the fields that they stand for, which must be absent. */
function misspeltFields (frontmatter: Frontmatter): ReadonlyMap<string, string> {
  const absent = new Set([...KNOWN_FIELDS].filter((field) => !Object.hasOwn(frontmatter, field)))
  const misspelt = new Map<string, string>()
  for (const name of Object.keys(frontmatter)) {
    const field = rightName(name, absent)
    if (field === undefined) continue
    misspelt.set(name, field)
    absent.delete(field)
  }
  return misspelt
}

function kindOf (value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'number') return 'a number'
  return typeof value === 'boolean' ? 'true or false' : 'a mapping'
}
