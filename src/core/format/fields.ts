import { finding, type FindingCode, quoteList } from './findings.ts'
import { isJsonObject, own } from '../shared/json.ts'
import { MAX_COMPATIBILITY_CODE_POINTS, MAX_DESCRIPTION_CODE_POINTS, MAX_NAME_CODE_POINTS } from '../shared/limits.ts'
import type { Finding, Frontmatter } from '../shared/skill.ts'
import { nearest } from '../shared/nearest.ts'
import { countCodePoints, quote } from '../shared/text.ts'

/** The fields of the Agent Skills format. */
export const KNOWN_FIELDS: ReadonlySet<string> = new Set(
  ['name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools']
)

/** Fields that Claude Code, VS Code or Cursor read besides those of the format. */
export const AGENT_FIELDS: ReadonlySet<string> = new Set([
  'when_to_use', 'argument-hint', 'arguments', 'disable-model-invocation', 'user-invocable', 'disallowed-tools',
  'model', 'effort', 'context', 'background',
  'agent', 'hooks', 'paths', 'shell'
])

export const NAME_CHARACTERS = /^[a-z0-9-]+$/
export const VALID_NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
export const RESERVED_WORD = /anthropic|claude/
/** Names that YAML 1.1 reads as something else than text: numbers, dates, truth values. */
const NOT_PLAIN_NAME = /^(?:\d.*|null|true|false|yes|no|on|off|y|n)$/
const OTHER_LETTER = /(?![a-z0-9])[\p{L}\p{N}]/u
export const XML_TAG = /<\/?[A-Za-z][^<>]*>/

/** How much of a name is read to make a valid one, in characters. */
const SLUG_SOURCE_CHARACTERS = 4 * MAX_NAME_CODE_POINTS

/**
 * Checks the fields of a frontmatter against the Agent Skills format and Wave's rules. Mistakes in `name` and
 * `description` are errors, the rest warnings or infos. Pure, never throws.
 */
export function validateFrontmatter (frontmatter: Frontmatter, folderName: string): Finding[] {
  return [
    ...checkName(frontmatter, folderName),
    ...checkDescription(field(frontmatter, 'description')),
    ...checkLicense(field(frontmatter, 'license')),
    ...checkCompatibility(field(frontmatter, 'compatibility')),
    ...checkMetadata(field(frontmatter, 'metadata')),
    ...checkAllowedTools(field(frontmatter, 'allowed-tools')),
    ...checkUnknownFields(frontmatter)
  ]
}

/** An own field; `null` and `~` count as absent. */
function field (frontmatter: Frontmatter, name: string): unknown {
  return own(frontmatter, name) ?? undefined
}

function checkName (frontmatter: Frontmatter, folderName: string): Finding[] {
  const name = field(frontmatter, 'name')
  const isWritten = own(frontmatter, 'name') !== undefined
  const fix = nameFix(name, isWritten, folderName)
  if (name === undefined || (typeof name === 'string' && name.trim() === '')) {
    return [finding('name_missing', `name is ${isWritten ? 'empty' : 'missing'}`, fix, 'name')]
  }
  if (typeof name !== 'string') return [finding('name_not_text', `name must be text, not ${kindOf(name)}`, fix, 'name')]

  const problem = (code: FindingCode, message: string) => finding(code, message, fix, 'name')
  const found: Finding[] = []
  const length = countCodePoints(name)
  if (length > MAX_NAME_CODE_POINTS) {
    found.push(problem('name_too_long', `name has ${length} characters, more than ${MAX_NAME_CODE_POINTS}`))
  }
  if (!NAME_CHARACTERS.test(name)) {
    found.push(
      problem('name_invalid_characters', `name ${quote(name)} must contain only lowercase letters, numbers and hyphens`)
    )
  }
  if (name.startsWith('-') || name.endsWith('-')) {
    found.push(problem('name_edge_hyphen', `name ${quote(name)} must not start or end with a hyphen`))
  }
  if (name.includes('--')) {
    found.push(problem('name_double_hyphen', `name ${quote(name)} must not contain two hyphens in a row`))
  }
  // A name that breaks a rule is to be changed in any case: that it differs is not a second mistake.
  if (name !== folderName && found.length === 0) {
    found.push(
      problem('name_folder_mismatch', `name ${quote(name)} does not match the folder name ${quote(folderName)}`)
    )
  }
  if (found.length === 0 && RESERVED_WORD.test(name)) {
    found.push(finding('name_reserved_word', `name ${quote(name)} contains a word that one provider refuses in uploads`,
      "Choose a name without 'anthropic' and 'claude' if the skill is to be uploaded there", 'name'))
  }
  return found
}

/** One instruction that gives the skill a valid name: a second line of that field would not be YAML. */
function nameFix (name: unknown, isWritten: boolean, folderName: string): string {
  const target = bestName(name, folderName)
  if (target === undefined) {
    return 'Choose a name of lowercase letters a to z, numbers and hyphens, and give it to the folder too'
  }
  if (name === target) return `Rename the folder to ${quote(target)}`
  const value = nameAsYaml(target)
  const change = value === target ? `Change name to ${quote(target)}` : `Change the line of name to 'name: ${value}'`
  const rename = target === folderName ? '' : ` and rename the folder to ${quote(target)}`
  return `${isWritten ? change : `Add 'name: ${value}' to the frontmatter`}${rename}`
}

/** A valid name as a value that every reader takes as text. */
export function nameAsYaml (name: string): string {
  return NOT_PLAIN_NAME.test(name) ? JSON.stringify(name) : name
}

/**
 * The valid name that needs the fewest changes: the folder's, else the frontmatter's, else one made of the folder's.
 */
function bestName (name: unknown, folderName: string): string | undefined {
  if (isValidName(folderName)) return folderName
  return typeof name === 'string' && isValidName(name) ? name : toValidName(folderName)
}

export function isValidName (name: string): boolean {
  return name.length <= MAX_NAME_CODE_POINTS && VALID_NAME.test(name)
}

/** Undefined when letters would be lost: no part of a name in another script stands for the whole. */
function toValidName (text: string): string | undefined {
  const plain = text.slice(0, SLUG_SOURCE_CHARACTERS).normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase()
  if (OTHER_LETTER.test(plain)) return undefined
  const name = plain.match(/[a-z0-9]+/g)?.join('-').slice(0, MAX_NAME_CODE_POINTS)
  return name?.replace(/-$/, '')
}

function checkDescription (description: unknown): Finding[] {
  if (description === undefined || (typeof description === 'string' && description.trim() === '')) {
    const state = description === undefined ? 'missing' : 'empty'
    return [finding('description_missing', `description is ${state}`,
      `Add a description of 1 to ${MAX_DESCRIPTION_CODE_POINTS} characters that says what the skill does and ` +
      'when to use it', 'description')]
  }
  if (typeof description !== 'string') {
    return [finding('description_not_text', `description must be text, not ${kindOf(description)}`,
      'Write description as one text in double quotes', 'description')]
  }

  const found: Finding[] = []
  const length = countCodePoints(description)
  if (length > MAX_DESCRIPTION_CODE_POINTS) {
    found.push(finding('description_too_long',
      `description has ${length} characters, more than ${MAX_DESCRIPTION_CODE_POINTS}`,
      `Shorten description by at least ${length - MAX_DESCRIPTION_CODE_POINTS} characters`, 'description'))
  }
  const tag = XML_TAG.exec(description)?.[0]
  if (tag !== undefined) {
    found.push(finding('description_xml_tag', `description contains ${quote(tag)}, which looks like an XML tag`,
      'Write description without angle brackets', 'description'))
  }
  return found
}

function checkLicense (license: unknown): Finding[] {
  if (license === undefined || typeof license === 'string') return []
  return [finding('license_not_text', `license must be text, not ${kindOf(license)}`,
    "Write license as the name of a licence or of a file in the skill's folder", 'license')]
}

function checkCompatibility (compatibility: unknown): Finding[] {
  if (compatibility === undefined) return []
  if (typeof compatibility !== 'string') {
    return [finding('compatibility_not_text', `compatibility must be text, not ${kindOf(compatibility)}`,
      'Write compatibility as one sentence', 'compatibility')]
  }
  const length = countCodePoints(compatibility)
  if (length === 0) {
    return [
      finding('compatibility_empty',
        'compatibility is empty', 'Remove the field compatibility or fill it in', 'compatibility')
    ]
  }
  if (length > MAX_COMPATIBILITY_CODE_POINTS) {
    return [finding('compatibility_too_long',
      `compatibility has ${length} characters, more than ${MAX_COMPATIBILITY_CODE_POINTS}`,
      `Shorten compatibility by at least ${length - MAX_COMPATIBILITY_CODE_POINTS} characters`, 'compatibility')]
  }
  return []
}

function checkMetadata (metadata: unknown): Finding[] {
  if (metadata === undefined) return []
  if (!isJsonObject(metadata)) {
    return [finding('metadata_not_mapping', `metadata must be a mapping of text to text, not ${kindOf(metadata)}`,
      "Write metadata as indented lines of the form 'key: value'", 'metadata')]
  }
  const keys = keysWithoutText(metadata)
  if (keys.length === 0) return []
  const isNested = (key: string): boolean => typeof metadata[key] === 'object' && metadata[key] !== null
  const nested = keys.filter(isNested)
  const plain = keys.filter((key) => !isNested(key))
  const fixes = [
    ...plain.length > 0 ? [`put the values of ${quoteList(plain)} in double quotes`] : [],
    ...nested.length > 0
      ? [`write the lists and mappings in ${quoteList(nested)} as text, for example with commas`]
      : []
  ].join(', and ')
  return [finding('metadata_not_text', `metadata has values that are not text: ${quoteList(keys)}`,
    capitalize(fixes), 'metadata')]
}

/** Keys of `metadata` whose values are not text, in their order. */
export function keysWithoutText (metadata: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.keys(metadata).filter((key) => typeof metadata[key] !== 'string')
}

function checkAllowedTools (tools: unknown): Finding[] {
  if (tools === undefined) return []
  const fix = 'Write allowed-tools as one text with a space between two tools'
  if (Array.isArray(tools)) {
    return [finding('allowed_tools_list', 'allowed-tools is a list instead of text', fix, 'allowed-tools')]
  }
  if (typeof tools !== 'string') {
    return [finding('allowed_tools_not_text', `allowed-tools must be text, not ${kindOf(tools)}`, fix, 'allowed-tools')]
  }
  const outsideBrackets = tools.replaceAll(/\([^()]*\)/g, '')
  if (!outsideBrackets.includes(',')) return []
  return [
    finding('allowed_tools_commas',
      'allowed-tools separates its tools with commas instead of spaces', fix, 'allowed-tools')
  ]
}

function checkUnknownFields (frontmatter: Frontmatter): Finding[] {
  const unknown = Object.keys(frontmatter).filter(name => !KNOWN_FIELDS.has(name))
  if (unknown.length === 0) return []
  return [finding('unknown_fields',
    `the frontmatter has fields that the Agent Skills format does not know: ${quoteList(unknown)}`,
    fixOfUnknown(unknown, misspeltFields(frontmatter)))]
}

/**
 * Whether a name is meant to be that of a field of the format. A typo is seldom in the first letter, and `date` is
 * not `name`.
 */
export function isMisspelt (name: string, fields: Iterable<string> = KNOWN_FIELDS): boolean {
  return rightName(name, fields) !== undefined
}

function rightName (name: string, fields: Iterable<string>): string | undefined {
  if (KNOWN_FIELDS.has(name) || AGENT_FIELDS.has(name)) return undefined
  const lower = name.toLowerCase()
  return [...fields].find((field) => lower.charAt(0) === field.charAt(0) && nearest(lower, [field]) !== undefined)
}

/** Misspelt fields of a frontmatter, each with its right name, of the fields that it does not have. */
export function misspeltFields (frontmatter: Frontmatter): ReadonlyMap<string, string> {
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

/** Fields that an agent reads have no effect elsewhere. */
function fixOfUnknown (unknown: readonly string[], misspelt: ReadonlyMap<string, string>): string {
  const read = unknown.filter((name) => AGENT_FIELDS.has(name))
  const unread = unknown.filter((name) => !AGENT_FIELDS.has(name) && !misspelt.has(name))
  const them = (names: readonly string[]): string => names.length === 1 ? 'it' : 'them'
  const fixes = [
    ...[...misspelt].map(([name, field]) => `rename ${quote(name)} to ${quote(field)}`),
    ...unread.length > 0 ? [`move ${quoteList(unread)} into metadata, or remove ${them(unread)}`] : [],
    ...read.length > 0
      ? [
        `leave ${quoteList(read)} to the agents that read ${them(read)}: other readers pass over ${them(read)}, ` +
        'or refuse the skill'
        ]
      : []
  ].join('; ')
  return capitalize(fixes)
}

function kindOf (value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'number') return 'a number'
  if (typeof value === 'boolean') return 'true or false'
  return isJsonObject(value) ? 'a mapping' : 'text'
}

function capitalize (text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}
