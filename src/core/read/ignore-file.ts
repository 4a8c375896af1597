import { isUtf8 } from 'node:buffer'
import createIgnore from 'ignore'
import { sha256 } from '../shared/digest.ts'
import type { PathFilter } from './hidden.ts'

/** The file with patterns of what is not served: in a skill, or in a root for all skills in it. */
export const IGNORE_FILE = '.skillignore'

export const MAX_IGNORE_FILE_BYTES = 16_384
export const MAX_IGNORE_PATTERNS = 64
/** In one segment of a pattern; a regular expression made of more takes seconds for one name. */
const MAX_STARS = 2
/** Segments `**` of one pattern: with four of them, one path took minutes. */
const MAX_DOUBLE_STARS = 2
/** Of a path that is asked about, in segments: deeper ones are hidden. */
const MAX_PATH_SEGMENTS = 32

/** The library keeps each of its answers for ever: it is made anew after this many. */
const MAX_KEPT_ANSWERS = 1_024

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
  const patterns = lines.filter((line) => line.trim() !== '' && !line.startsWith('#'))
  if (patterns.length > MAX_IGNORE_PATTERNS) return { id, problem: `has more than ${MAX_IGNORE_PATTERNS} patterns` }
  const heavy = patterns.find(isHeavy)
  if (heavy !== undefined) {
    return { id, problem: `has more than ${MAX_STARS} wildcards in one part of line ${lines.indexOf(heavy) + 1}` }
  }
  return { id, filter: createFilter(id, patterns) }
}

/** Why an ignore file could not be read. */
export function unreadableIgnoreFile (problem: string): IgnoreRules {
  return { id: `unreadable: ${problem}`, problem }
}

function createFilter (id: string, patterns: readonly string[]): PathFilter {
  const create = () => createIgnore({ ignorecase: false }).add(patterns)
  let ignore = create()
  let answers = 0
  return {
    id,
    hides (path, isFolder) {
      // The library answers for each folder on the way too.
      const depth = path.split('/').length
      if (depth > MAX_PATH_SEGMENTS) return true
      answers += depth
      if (answers > MAX_KEPT_ANSWERS) {
        ignore = create()
        answers = depth
      }
      return ignore.ignores(isFolder ? `${path}/` : path)
    }
  }
}

function isHeavy (line: string): boolean {
  const segments = line.split('/')
  return segments.filter((segment) => segment.includes('**')).length > MAX_DOUBLE_STARS ||
    segments.some((segment) => segment.split(/\*+/).length - 1 > MAX_STARS)
}
