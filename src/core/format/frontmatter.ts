import { finding, quoteList } from './findings.ts'
import { isJsonObject, own } from '../shared/json.ts'
import { MAX_FRONTMATTER_BYTES } from '../shared/limits.ts'
import type { Finding, Frontmatter } from '../shared/skill.ts'
import { failureFinding, readLenientYaml } from './yaml.ts'

interface ParsedFrontmatter {
  readonly frontmatter: Frontmatter
  readonly findings: readonly Finding[]
  /** False where nothing could be read: the findings say why. */
  readonly isRead: boolean
}

const CONTROL_CHARACTER = /[^\P{Cc}\t]/u

const HALF_CHARACTER = finding('half_character', 'the frontmatter has half a character, which is served as U+FFFD',
  "Write the character itself instead of its '\\u' escapes")

/**
 * Reads the YAML between the fences: YAML 1.2 core types, no aliases, bounded depth and size. Never throws.
 */
export function parseFrontmatter (bytes: Buffer): ParsedFrontmatter {
  const parsed = parse(bytes)
  // The bytes are valid UTF-8: only an escape stands for half a character.
  if (!bytes.includes('\\')) return parsed
  const frontmatter = wellFormedFields(parsed.frontmatter)
  if (JSON.stringify(frontmatter) === JSON.stringify(parsed.frontmatter)) return parsed
  return { ...parsed, frontmatter, findings: [...parsed.findings, HALF_CHARACTER] }
}

/** JSON cannot carry half a surrogate pair: U+FFFD takes its place in keys and values. */
function wellFormedFields (fields: Frontmatter): Frontmatter {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key.toWellFormed(), wellFormed(value)]))
}

function wellFormed (value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  return isJsonObject(value) ? wellFormedFields(value) : value
}

function parse (bytes: Buffer): ParsedFrontmatter {
  if (bytes.length > MAX_FRONTMATTER_BYTES) {
    return refused(finding('frontmatter_too_large',
      `the frontmatter has ${bytes.length} bytes, more than the ${MAX_FRONTMATTER_BYTES} that are read`,
      'Move long text from the frontmatter into the body of SKILL.md'))
  }
  const { outcome, repaired } = readLenientYaml(bytes.toString())
  if (outcome.kind === 'failure') return refused(failureFinding(outcome))
  const { value } = outcome
  if (isJsonObject(value)) return { frontmatter: value, findings: repairFindings(repaired, value), isRead: true }
  return refused(value === null || value === undefined
    ? finding('frontmatter_empty', 'the frontmatter is empty',
      "Add the fields name and description between the two '---' lines")
    : finding('frontmatter_not_mapping', 'the frontmatter does not consist of fields',
      "Write the frontmatter as lines of the form 'field: value', beginning with name and description"))
}

function refused (problem: Finding): ParsedFrontmatter {
  return { frontmatter: {}, findings: [problem], isRead: false }
}

/** One finding for all fields whose text was read as it stands. */
function repairFindings (fields: readonly string[], values: Frontmatter): Finding[] {
  if (fields.length === 0) return []
  const names = quoteList(fields)
  const texts = fields.map((field) => String(own(values, field)))
  // Double quotes give a meaning to what has none here.
  const inSingle = texts.some((text) => /["\\]/.test(text))
  const hasApostrophe = inSingle && texts.some((text) => text.includes("'"))
  const fix = `Put the text of ${names} in ${inSingle ? 'single' : 'double'} quotes` +
    (hasApostrophe ? ", with each ' in it written twice" : '') +
    (texts.some((text) => CONTROL_CHARACTER.test(text)) ? ', without control characters' : '')
  return [finding('yaml_repaired', `the text of ${names} is not valid YAML and was read as it stands`, fix, fields[0])]
}
