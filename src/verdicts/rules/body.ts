import MarkdownIt, { type Token } from 'markdown-it'
import { type Position, quoteList } from '../../core/format/findings.ts'
import { locateFrontmatter } from '../../core/format/fences.ts'
import { positionAt } from '../../core/format/hidden-text.ts'
import { parseRelativePath } from '../../core/read/relative-path.ts'
import { foldersAbove } from '../../core/shared/paths.ts'
import type { Finding, ListedFile } from '../../core/shared/skill.ts'
import { decodePercent } from '../../core/shared/text.ts'
import { finding, type FindingCode } from '../findings.ts'

/** Longest part of a body that is searched for references, in characters, and its nesting: Markdown is untrusted. */
const MAX_PARSED_CHARACTERS = 16_384
const MAX_NESTING = 20

/** Placeholders that Claude Code replaces when it loads a skill: arguments, paths, the output of commands. */
const PLACEHOLDER = /\$ARGUMENTS\b|\$\{CLAUDE_[A-Z_]+\}|(?<=^|\s)!`[^`\n]{1,500}`/m

/** Destinations that are not files of the skill: addresses, headings, paths of a host, and templates. */
const NO_FILE = /^(?:[a-z][a-z\d+.-]*:|\/|#|\?|$)|[<>{}*$|\\]|\.\.\.|…/i

/** Path in backticks. It is a reference only in a usual or existing folder: others are examples, or files to create. */
const PATH = /^(?:\.\/)?([\w.-]+)\/(?:[\w.-]+\/)*[\w-][\w.-]*\.[a-z]\w{0,7}$/i
const USUAL_FOLDERS: readonly string[] = ['assets', 'references', 'scripts']

// A footnote definition would be parsed as a link definition.
const markdown = new MarkdownIt('commonmark', { maxNesting: MAX_NESTING }).disable('reference')
markdown.validateLink = () => true
markdown.normalizeLink = (destination) => destination

interface Reference {
  readonly destination: string
  readonly position: Position
}

/**
 * Checks a body for placeholders that nobody fills in, and for references to files that are not there.
 * @param mainFile the main file in UTF-8
 * @param files undefined when nobody knows them: then no reference is checked
 */
export function bodyFindings (mainFile: Buffer, files: readonly ListedFile[] | undefined): readonly Finding[] {
  const { bodyStart } = locateFrontmatter(mainFile)
  const body = mainFile.toString('utf8', bodyStart)
  const firstLine = mainFile.toString('latin1', 0, bodyStart).split('\n').length
  return [...checkPlaceholders(body, firstLine), ...files === undefined ? [] : checkReferences(body, firstLine, files)]
}

function checkPlaceholders (body: string, firstLine: number): Finding[] {
  const match = PLACEHOLDER.exec(body)
  if (match === null) return []
  const { line, column } = positionAt(body, match.index)
  return [finding('body_placeholder',
    `the body has a placeholder that only Claude Code fills in: ${quoteList([match[0]])}`,
    'Say in words what belongs there, for readers that do not fill it in', undefined,
    { line: firstLine + line - 1, column })]
}

function checkReferences (body: string, firstLine: number, files: readonly ListedFile[]): Finding[] {
  const there = new Set(['.', ...files.flatMap(({ path }) => [path, ...foldersAbove(path)])])
  const missing: Reference[] = []
  const outside: Reference[] = []
  for (const reference of referencesOf(body, firstLine, there)) {
    const [written = ''] = reference.destination.split(/[?#]/, 1)
    const found = parseRelativePath(decodePercent(written) ?? written)
    if (found.kind === 'outside') outside.push(reference)
    else if (found.kind !== 'inside' || !there.has(found.path.replace(/\/$/, ''))) missing.push(reference)
  }
  return [
    ...report('body_link_missing', missing, 'the body refers to files that the skill does not have',
      'Add the files, or correct the references'),
    ...report('body_link_outside', outside, 'the body links to files outside the skill',
      'Put copies of the files into the skill folder, or say in words what is in them')
  ]
}

function report (code: FindingCode, references: readonly Reference[], what: string, fix: string): Finding[] {
  const names = new Set(references.map(({ destination }) => destination))
  return references.slice(0, 1).map(({ position }) =>
    finding(code, `${what}: ${quoteList([...names])}`, fix, undefined, position))
}

/** Yields links, images, and paths in backticks, but nothing in blocks of code. */
function * referencesOf (body: string, firstLine: number, there: ReadonlySet<string>): Generator<Reference> {
  const lines = body.split('\n')
  for (const { children, map } of markdown.parse(body.slice(0, MAX_PARSED_CHARACTERS), {})) {
    if (children === null || map === null) continue
    let line = map[0]
    for (const token of children) {
      if (token.type === 'softbreak' || token.type === 'hardbreak') line++
      const destination = destinationOf(token, there)
      if (destination === undefined) continue
      const column = Math.max((lines[line] ?? '').indexOf(destination), 0) + 1
      yield { destination, position: { line: firstLine + line, column } }
    }
  }
}

function destinationOf (token: Token, there: ReadonlySet<string>): string | undefined {
  const { type, content } = token
  if (type === 'code_inline') {
    const [, folder = ''] = PATH.exec(content) ?? []
    return USUAL_FOLDERS.includes(folder) || there.has(folder) ? content : undefined
  }
  const attribute = type === 'link_open' ? 'href' : type === 'image' ? 'src' : undefined
  const destination = attribute === undefined ? '#' : String(token.attrGet(attribute))
  return NO_FILE.test(destination) ? undefined : destination
}
