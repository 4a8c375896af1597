import { isUtf8 } from 'node:buffer'
import createIgnore, { type Ignore } from 'ignore'
import { sha256 } from '../shared/digest.ts'
import { MAX_IGNORE_PATH_SEGMENTS, MAX_IGNORE_PATTERNS } from '../shared/limits.ts'
import type { PathFilter } from './hidden.ts'

/** The file with patterns of what is not served: in a skill, or in a root for all skills in it. */
export const IGNORE_FILE = '.skillignore'

/** The library caches each answer for ever, so it is replaced after this many. */
const MAX_KEPT_ANSWERS = 1_024

/** In one segment of a pattern; a regular expression made of more takes seconds for one name. */
const MAX_STARS = 2
/** Segments `**` of one pattern: with four of them, one path took minutes. */
const MAX_DOUBLE_STARS = 2

/** What an ignore file says; or why it cannot be used, as the end of a sentence. */
export type IgnoreRules =
  | { readonly id: string, readonly filter: PathFilter }
  | { readonly id: string, readonly problem: string }

/**
 * Reads the patterns of an ignore file, in the syntax of gitignore(5). A library turns each into a regular
 * expression, so their number and shape are bounded. The author of a skill could otherwise hold up the service.
 */
export function parseIgnoreFile (bytes: Buffer): IgnoreRules {
  const id = sha256(bytes)
  if (!isUtf8(bytes)) return { id, problem: 'is not valid UTF-8' }
  const lines = bytes.toString('utf8').split(/\r?\n/)
  const patterns = lines.filter(isPattern)
  if (patterns.length > MAX_IGNORE_PATTERNS) return { id, problem: `has more than ${MAX_IGNORE_PATTERNS} patterns` }
  const heavy = lines.findIndex((line) => isPattern(line) && isHeavy(line))
  if (heavy !== -1) return { id, problem: `has more than ${MAX_STARS} wildcards in one part of line ${heavy + 1}` }
  return { id, filter: new PatternFilter(id, patterns) }
}

/** Why an ignore file could not be read. */
export function unreadableIgnoreFile (problem: string): IgnoreRules {
  return { id: `unreadable: ${problem}`, problem }
}

class PatternFilter implements PathFilter {
  readonly id: string
  readonly #patterns: readonly string[]
  #ignore: Ignore
  #answers = 0

  constructor (id: string, patterns: readonly string[]) {
    this.id = id
    this.#patterns = patterns
    this.#ignore = this.#create()
  }

  hides (path: string, isFolder: boolean): boolean {
    // The library answers for each folder on the way too.
    const depth = path.split('/').length
    if (depth > MAX_IGNORE_PATH_SEGMENTS) return true
    this.#answers += depth
    if (this.#answers > MAX_KEPT_ANSWERS) this.#ignore = this.#create()
    return this.#ignore.ignores(isFolder ? `${path}/` : path)
  }

  #create (): Ignore {
    this.#answers = 0
    return createIgnore({ ignorecase: false }).add(this.#patterns)
  }
}

function isPattern (line: string): boolean {
  return line.trim() !== '' && !line.startsWith('#')
}

function isHeavy (line: string): boolean {
  const segments = line.split('/')
  return segments.filter((segment) => segment.includes('**')).length > MAX_DOUBLE_STARS ||
    segments.some((segment) => segment.split(/\*+/).length - 1 > MAX_STARS)
}
