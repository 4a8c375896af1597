import { isUtf8 } from 'node:buffer'
import { own } from '../shared/json.ts'
import { MAX_SEARCHED_CHARACTERS } from '../shared/limits.ts'
import type { Finding, Frontmatter } from '../shared/skill.ts'
import { quote } from '../shared/text.ts'
import { type FrontmatterLocation, locateFrontmatter } from './fences.ts'
import { validateFrontmatter } from './fields.ts'
import { finding } from './findings.ts'
import { parseFrontmatter } from './frontmatter.ts'
import { checkContent } from './hidden-text.ts'
import { locateFindings } from './positions.ts'

interface ParsedSkill {
  /** Empty if there is none or it cannot be read. Untrusted: read own properties only. */
  readonly frontmatter: Frontmatter
  /** `name` of the frontmatter if it is non-blank text, else that of the folder; and `description`. Both trimmed. */
  readonly summary: { readonly name: string, readonly description: string }
  /** In the order in which an author should fix what is wrong. */
  readonly findings: readonly Finding[]
  readonly headings: readonly string[]
}

/** Bytes of a file without frontmatter that are searched for the mistake. */
const DIAGNOSIS_BYTES = 4096

/** What git writes instead of a symbolic link on systems without them. */
const LINK_TEXT = /^(?:\.{0,2}\/[^\r\n]+|[^\s/]+\/\S+|\S+\.md)$/i

const MISPLACED_FRONTMATTER = /^---[ \t]*\r?\n(?:name|description)[ \t]*:/m

/** Reads a main file in linear time. Never throws, and keeps no part of `bytes`. */
export function parseSkillBytes (bytes: Buffer, folderName: string): ParsedSkill {
  if (!isUtf8(bytes)) {
    const [before = ''] = bytes.toString().split('\uFFFD', 1)
    const found = finding('main_file_not_utf8', 'SKILL.md is not valid UTF-8', 'Save SKILL.md with the encoding UTF-8',
      undefined, { line: before.split('\n').length, column: 1 })
    return { frontmatter: {}, summary: summaryOf({}, folderName), findings: [found], headings: [] }
  }
  const text = bytes.toString()
  const location = locateFrontmatter(bytes)
  const { frontmatter, findings } = readFrontmatter(bytes, folderName, location)
  const source = location.kind === 'found' ? bytes.toString('utf8', location.start, location.end) : ''
  return {
    frontmatter,
    summary: summaryOf(frontmatter, folderName),
    findings: locateFindings([...findings, ...checkContent(text)], source),
    headings: headingsOf(bodyAt(text, bytes, location))
  }
}

/** Returns the text after the closing fence, verbatim; without frontmatter, the whole text without its BOM. */
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
  if (location.kind !== 'found') {
    const problem = location.kind === 'unclosed' ? UNCLOSED : diagnoseMissing(bytes, location.bodyStart)
    return { frontmatter: {}, findings: [problem] }
  }
  const { start, end, bodyStart } = location
  const { frontmatter, findings, isRead } = parseFrontmatter(bytes.subarray(start, end))
  // Only the opening fence is checked: a file has the same line ends throughout, and some readers refuse CRLF there.
  const hasCrlf = bytes.toString('latin1', start - 2, start) === '\r\n'
  return {
    frontmatter,
    findings: [
      ...findings,
      ...isRead ? validateFrontmatter(frontmatter, folderName) : [],
      ...hasCrlf ? [CRLF] : [],
      ...checkBody(bytes, bodyStart)
    ]
  }
}

function summaryOf (frontmatter: Frontmatter, folderName: string): ParsedSkill['summary'] {
  return { name: trimmedText(frontmatter, 'name') || folderName, description: trimmedText(frontmatter, 'description') }
}

function trimmedText (frontmatter: Frontmatter, field: string): string {
  const value = own(frontmatter, field)
  return typeof value === 'string' ? value.trim() : ''
}

/** Finds out why the first line is not a fence. */
function diagnoseMissing (bytes: Buffer, fileStart: number): Finding {
  const head = bytes.toString('utf8', fileStart, fileStart + DIAGNOSIS_BYTES)
  if (head.startsWith('---\r')) {
    return finding('line_ends_cr', 'SKILL.md ends its lines with a bare carriage return',
      'Save SKILL.md with LF line ends')
  }
  if (head.startsWith('---')) {
    const firstLine = head.split(/\r?\n/, 1)[0] ?? head
    return finding('fence_unusual', `the first line of SKILL.md is ${quote(firstLine)} instead of '---'`,
      "Change the first line of SKILL.md to '---'")
  }
  if (bytes.length < DIAGNOSIS_BYTES && LINK_TEXT.test(head)) {
    return finding('main_file_link_text',
      `SKILL.md contains nothing but the path ${quote(head)}: it was a symbolic link before`,
      'Check the repository out with core.symlinks=true, or put a copy of the file there')
  }
  if (MISPLACED_FRONTMATTER.test(head)) {
    return finding('frontmatter_not_first', 'there is text before the frontmatter of SKILL.md',
      "Move the opening '---' to the first line of SKILL.md")
  }
  return finding('frontmatter_missing',
    bytes.length === fileStart ? 'SKILL.md is empty' : 'SKILL.md has no frontmatter',
    "Begin SKILL.md with a line '---', the fields name and description, and another line '---'")
}

const UNCLOSED = finding('frontmatter_unclosed', "the frontmatter is not closed with a line '---'",
  "Add a line '---' after the last field of the frontmatter")

const CRLF = finding('line_ends_crlf', 'SKILL.md ends its lines with CRLF', 'Save SKILL.md with LF line ends')

function checkBody (bytes: Buffer, bodyStart: number): Finding[] {
  if (/[^\0- ]/.test(bytes.toString('latin1', bodyStart))) return []
  const line = bytes.toString('latin1', 0, Math.min(bodyStart, bytes.length - 1)).split('\n').length
  return [finding('body_empty', 'SKILL.md has no instructions after the frontmatter',
    'Write the instructions of the skill below the frontmatter', undefined, { line, column: 1 })]
}

/** A heading that begins with `#`, or a fence of a code block. */
const HEADING_OR_FENCE = /^ {0,3}(?:#{1,6}[ \t]+(.+)|(`{3,}|~{3,})(.*))$/gm

/** Returns the headings of a Markdown body for search, up to MAX_SEARCHED_CHARACTERS. Skips code blocks. */
function headingsOf (body: string): readonly string[] {
  const headings: string[] = []
  let fence: string | undefined
  let characters = 0
  for (const [, heading, mark, info = ''] of body.matchAll(HEADING_OR_FENCE)) {
    if (mark !== undefined) {
      if (fence === undefined) fence = mark
      else if (mark.startsWith(fence) && info.trim() === '') fence = undefined
    } else if (heading !== undefined && fence === undefined) {
      const text = heading.trim().replace(/[ \t]#+$/, '').trimEnd()
      characters += text.length
      if (characters > MAX_SEARCHED_CHARACTERS) break
      // A copy, since V8 would keep the whole text alive for a slice of it.
      headings.push(Buffer.from(text).toString())
    }
  }
  return headings
}
