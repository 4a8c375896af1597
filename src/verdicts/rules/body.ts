import { finding, quoteList, type Position } from '../../core/format/findings.ts'
import { locateFrontmatter } from '../../core/format/fences.ts'
import type { Finding, ListedFile } from '../../core/shared/skill.ts'
import { decodePercent } from '../../core/shared/text.ts'

/** Links of a body that are checked, and the longest of them, in characters. */
const MAX_LINKS = 1_000
const MAX_TRIED = 10_000
const MAX_LINK_CHARACTERS = 512

/** How much of a line is searched for links, in characters, and lines that are read without a pause. */
const MAX_LINE_CHARACTERS = 10_000
const LINES_TOGETHER = 1_000

/** What Claude Code replaces when it loads a skill: arguments, paths, the output of commands. */
const PLACEHOLDER = /\$ARGUMENTS\b|\$\{CLAUDE_[A-Z_]+\}|(?<=^|\s)!`[^`\n]{1,500}`/m
const PLACEHOLDER_BEGINNINGS = ['$ARGUMENTS', '${CLAUDE_', '!`']

/** Marks of quotations and lists, in each other. No two parts can take the same blanks. */
const CONTAINERS = /^[ \t]*(?:(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))[ \t]*){1,20}/

const QUOTE_MARKS = /^[ \t]*(?:>[ \t]*){1,20}/

/** In a list, a fence has any indentation. What is behind the mark may end with a carriage return. */
const FENCE = /^[ \t]*(`{3,}|~{3,})(.*)/s

/**
 * The destination of a link, up to the bracket that closes it or a title. It may hold brackets in pairs. Other words in
 * the brackets make them prose.
 */
const DESTINATION = /^((?:[^\s()]|\([^\s()]*\))*)(?:\s*\)|\s+["'(])/

/** Destinations that name no file of the skill: addresses, headings, paths of a host, and templates. */
const NO_FILE = /^(?:[a-z][a-z\d+.-]*:|\/|#|\?)|[<>{}*$|\\]|\.\.\.|…/i

interface Link {
  readonly destination: string
  readonly position: Position
}

/**
 * What is to be said of a body: placeholders that nobody fills in, and links to files that are not there.
 * @param mainFile the main file in UTF-8
 * @param files undefined when nobody knows them: then no link is checked
 */
export function * bodyFindings (
  mainFile: Buffer, files: readonly ListedFile[] | undefined
): Generator<undefined, readonly Finding[]> {
  const { bodyStart } = locateFrontmatter(mainFile)
  const body = mainFile.toString('utf8', bodyStart)
  const firstLine = mainFile.toString('latin1', 0, bodyStart).split('\n').length
  const placeholders = checkPlaceholders(body, firstLine)
  yield
  return [...placeholders, ...files === undefined ? [] : yield * checkLinks(body, firstLine, files)]
}

function checkPlaceholders (body: string, firstLine: number): Finding[] {
  // Looking for three texts takes a tenth of the time of the expression.
  if (!PLACEHOLDER_BEGINNINGS.some((text) => body.includes(text))) return []
  const match = PLACEHOLDER.exec(body)
  if (match === null) return []
  const before = body.slice(0, match.index)
  const position = { line: firstLine + before.split('\n').length - 1, column: match.index - before.lastIndexOf('\n') }
  return [finding('body_placeholder', 'the body has a placeholder that only Claude Code fills in: ' +
    `${quoteList([match[0]])}`,
  'Say in words what belongs there, for readers that do not fill it in', undefined, position)]
}

function * checkLinks (
  body: string, firstLine: number, files: readonly ListedFile[]
): Generator<undefined, readonly Finding[]> {
  if (!body.includes('](')) return []
  const there = namesOf(files)
  const missing: Link[] = []
  const outside: Link[] = []
  for (const link of yield * linksOf(body, firstLine)) {
    const path = resolvePath(link.destination)
    if (path === undefined) outside.push(link)
    else if (path !== '' && !there.has(path)) missing.push(link)
  }
  const report = (
    code: 'body_link_missing' | 'body_link_outside', links: readonly Link[], what: string, fix: string
  ): Finding[] => {
    const [first] = links
    const names = [...new Set(links.map(({ destination }) => destination))]
    return first === undefined ? [] : [finding(code, `${what}: ${quoteList(names)}`, fix, undefined, first.position)]
  }
  return [
    ...report(
      'body_link_missing', missing, 'the body links to files that the skill does not have',
      'Add the files, or correct the links'
    ),
    ...report(
      'body_link_outside', outside, 'the body links to files outside the skill',
      'Put copies of the files into the skill folder, or say in words what is in them'
    )
  ]
}

/** All files, and the folders that they are in. */
function namesOf (files: readonly ListedFile[]): ReadonlySet<string> {
  const names = new Set<string>()
  for (const { path } of files) {
    names.add(path)
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const folder = path.slice(0, at)
      if (names.has(folder)) break
      names.add(folder)
    }
  }
  return names
}

/** Inline links and images outside code. One pass: each character is read a bounded number of times. */
function * linksOf (body: string, firstLine: number): Generator<undefined, readonly Link[]> {
  const links: Link[] = []
  let fence: string | undefined
  let isQuoted = false
  let tried = 0
  for (const [index, text] of body.split('\n').entries()) {
    if (index % LINES_TOGETHER === 0) yield
    // A quotation ends where a line has no mark of one, and the code in it too, closed or not.
    if (fence !== undefined && isQuoted && !QUOTE_MARKS.test(text)) fence = undefined
    // Inside of a fence a mark of a list is text, and that of a quotation stays one.
    const line = text.replace(fence === undefined ? CONTAINERS : QUOTE_MARKS, '')
    const [, mark, info = ''] = FENCE.exec(line) ?? []
    // Behind the mark that closes is nothing; one with backticks behind it is code in the line.
    const isFence = mark !== undefined &&
      (fence === undefined ? mark.startsWith('~') || !info.includes('`') : mark.startsWith(fence) && info.trim() === '')
    if (isFence) isQuoted = text.slice(0, -line.length).includes('>')
    if (isFence) fence = fence === undefined ? mark : undefined
    if (fence !== undefined || isFence || !text.includes('](')) continue
    yield
    const plain = text.slice(0, MAX_LINE_CHARACTERS).replaceAll(/(`+)[^`]*\1/g, (code) => ' '.repeat(code.length))
    for (let at = plain.indexOf(']('); at !== -1 && tried++ < MAX_TRIED && links.length < MAX_LINKS; at = plain.indexOf(
      '](', at + 2
    )) {
      const [, destination = ''] = DESTINATION.exec(plain.slice(at + 2, at + 2 + MAX_LINK_CHARACTERS)) ?? []
      if (destination !== '' && !NO_FILE.test(destination)) {
        links.push({ destination, position: { line: firstLine + index, column: at + 3 } })
      }
    }
  }
  return links
}

/** The path of a file of the skill, `''` for the skill's own folder; undefined for one outside. */
function resolvePath (destination: string): string | undefined {
  const parts: string[] = []
  const [path = ''] = destination.split(/[?#]/, 1)
  for (const part of (decodePercent(path) ?? path).split('/')) {
    if (part === '' || part === '.') continue
    if (part !== '..') parts.push(part)
    else if (parts.pop() === undefined) return undefined
  }
  return parts.join('/')
}
