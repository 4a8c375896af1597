import { isUtf8 } from 'node:buffer'
import { checkContent } from './hidden-text.ts'
import { finding } from './findings.ts'
import { type FrontmatterLocation, locateFrontmatter, startsWithBom } from './fences.ts'
import { parseFrontmatter } from './frontmatter.ts'
import { headingsOf } from './headings.ts'
import { own } from '../shared/json.ts'
import { MAX_FRONTMATTER_BYTES } from '../shared/limits.ts'
import type { Finding, Frontmatter } from '../shared/skill.ts'
import { copyOf, quote } from '../shared/text.ts'
import { locateFindings } from './positions.ts'
import { validateFrontmatter } from './fields.ts'

/** A main file without its text. */
interface ParsedSkill {
  /** `{}` when there is none or it cannot be read. Untrusted: own properties only. */
  readonly frontmatter: Frontmatter
  readonly summary: SkillSummary
  /** In the order in which an author should fix what is wrong. */
  readonly findings: readonly Finding[]
  /** Headings of the body, for search. */
  readonly headings: readonly string[]
}

/** Name and purpose of a skill, both trimmed. */
interface SkillSummary {
  /** The frontmatter's `name` if it is text and not blank, else the folder's. */
  readonly name: string
  /** The frontmatter's `description` if it is text, else empty. */
  readonly description: string
}

const CR = 0x0d
const BLANK = 0x20

/** How much of a file without frontmatter is searched for the mistake, in bytes. */
const DIAGNOSIS_BYTES = 4096

/** What git leaves of a symbolic link where there are none: the path that it leads to, without a line end. */
const LINK_TEXT = /^(?:\.{0,2}\/[^\r\n]+|[^\s/]+\/\S+|\S+\.md)$/i

const MISPLACED_FRONTMATTER = /^---[ \t]*\r?\n(?:name|description)[ \t]*:/m
const DOTS_LINE = /^\.\.\.[ \t]*\r?$/m

/**
 * Reads a main file. Pure, never throws, keeps no part of `bytes`; the time is linear in their number.
 *
 * @param bytes the whole file
 * @param folderName the name of the skill's folder
 */
export function parseSkillBytes (bytes: Buffer, folderName: string): ParsedSkill {
  if (!isUtf8(bytes)) {
    const position = { line: firstLineNotUtf8(bytes), column: 1 }
    const found = finding('main_file_not_utf8', 'SKILL.md is not valid UTF-8', 'Save SKILL.md with the encoding UTF-8',
      undefined, position)
    return { frontmatter: {}, summary: summaryOf({}, folderName), findings: [found], headings: [] }
  }
  const text = bytes.toString()
  const location = locateFrontmatter(bytes)
  const { frontmatter, findings } = readFrontmatter(bytes, folderName, location)
  return {
    frontmatter,
    summary: summaryOf(frontmatter, folderName),
    findings: locateFindings([...findings, ...checkBom(bytes), ...checkContent(text)], bytes, location, frontmatter),
    headings: headingsOf(bodyAt(text, bytes, location))
  }
}

function firstLineNotUtf8 (bytes: Buffer): number {
  let line = 1
  for (let start = 0; start < bytes.length; line++) {
    const end = bytes.indexOf(0x0a, start)
    if (!isUtf8(bytes.subarray(start, end === -1 ? undefined : end))) break
    start = end === -1 ? bytes.length : end + 1
  }
  return line
}

/** The text after the closing fence, verbatim; the whole text without its BOM when there is no frontmatter. */
export function skillBody (text: string): string {
  const bytes = Buffer.from(text)
  return bodyAt(text, bytes, locateFrontmatter(bytes))
}

function bodyAt (text: string, bytes: Buffer, { bodyStart }: FrontmatterLocation): string {
  return text.slice(bytes.toString('utf8', 0, bodyStart).length)
}

function readFrontmatter (
  bytes: Buffer, folderName: string, location: FrontmatterLocation
): Pick<ParsedSkill, 'frontmatter' | 'findings'> {
  if (location.kind === 'missing') return { frontmatter: {}, findings: [diagnoseMissing(bytes, location.bodyStart)] }
  if (location.kind === 'unclosed') return { frontmatter: {}, findings: [diagnoseUnclosed(bytes)] }

  const { frontmatter, findings, isRead } = parseFrontmatter(bytes.subarray(location.start, location.end))
  return {
    frontmatter,
    findings: [
      ...findings,
      ...isRead ? validateFrontmatter(frontmatter, folderName) : [],
      ...checkLineEnds(bytes, location.start),
      ...checkBody(bytes, location.bodyStart)
    ]
  }
}

function summaryOf (frontmatter: Frontmatter, folderName: string): SkillSummary {
  const name = trimmedText(frontmatter, 'name')
  return { name: name === '' ? folderName : name, description: trimmedText(frontmatter, 'description') }
}

/** A copy, since the summary outlives the frontmatter's source. */
function trimmedText (frontmatter: Frontmatter, field: string): string {
  const value = own(frontmatter, field)
  return typeof value === 'string' ? copyOf(value.trim()) : ''
}

/** The finding for a file whose first line is not a fence: it names what stands there. */
function diagnoseMissing (bytes: Buffer, fileStart: number): Finding {
  const head = bytes.toString('utf8', fileStart, fileStart + DIAGNOSIS_BYTES)
  if (bytes.length < DIAGNOSIS_BYTES && LINK_TEXT.test(head) && !head.startsWith('---')) {
    return finding('main_file_link_text',
      `SKILL.md holds nothing but the path ${quote(head)}: it was a symbolic link before`,
      'Check the repository out with core.symlinks=true, or put a copy of the file there')
  }
  if (head.startsWith('---\r')) {
    return finding('line_ends_cr', 'SKILL.md ends its lines with a bare carriage return',
      'Save SKILL.md with LF line ends')
  }
  if (head.startsWith('---')) {
    const firstLine = head.split(/\r?\n/, 1)[0] ?? head
    return finding('fence_unusual', `the first line of SKILL.md is ${quote(firstLine)} instead of '---'`,
      "Change the first line of SKILL.md to '---'")
  }
  if (MISPLACED_FRONTMATTER.test(head)) {
    return finding('frontmatter_not_first', 'something stands before the frontmatter of SKILL.md',
      "Move the opening '---' to the first line of SKILL.md")
  }
  return finding('frontmatter_missing',
    bytes.length === fileStart ? 'SKILL.md is empty' : 'SKILL.md has no frontmatter',
    "Begin SKILL.md with a line '---', the fields name and description, and another line '---'")
}

function diagnoseUnclosed (bytes: Buffer): Finding {
  const head = bytes.toString('utf8', 0, MAX_FRONTMATTER_BYTES)
  if (DOTS_LINE.test(head)) {
    return finding('frontmatter_unclosed', "the frontmatter is closed with '...' instead of '---'",
      "Change the line '...' to '---'")
  }
  return finding('frontmatter_unclosed', "the frontmatter is not closed with a line '---'",
    "Add a line '---' after the last field of the frontmatter")
}

function checkBom (bytes: Buffer): Finding[] {
  if (!startsWithBom(bytes)) return []
  return [finding('byte_order_mark', 'SKILL.md starts with a byte order mark',
    'Save SKILL.md as UTF-8 without a byte order mark')]
}

/** Only the opening fence is checked: a file has the same line ends throughout, and some readers refuse CRLF there. */
function checkLineEnds (bytes: Buffer, frontmatterStart: number): Finding[] {
  if (bytes[frontmatterStart - 2] !== CR) return []
  return [finding('line_ends_crlf', 'SKILL.md ends its lines with CRLF', 'Save SKILL.md with LF line ends')]
}

function checkBody (bytes: Buffer, bodyStart: number): Finding[] {
  if (bytes.subarray(bodyStart).some((byte) => byte > BLANK)) return []
  return [finding('body_empty', 'SKILL.md has no instructions after the frontmatter',
    'Write the instructions of the skill below the frontmatter')]
}
