import { isUtf8 } from 'node:buffer'
import createIgnore from 'ignore'
import { finding } from '../format/findings.ts'
import { isMainFile } from '../format/main-files.ts'
import { sha256 } from '../shared/digest.ts'
import type { Finding } from '../shared/skill.ts'
import type { Disk } from './disk.ts'
import type { PathFilter } from './hidden.ts'
import { openInside } from './open-inside.ts'
import { asRefused, isInconclusive, type Refusal } from './refused.ts'
import { type FileStamp, stampAt } from './file-stamp.ts'

/** Name of the ignore file: in a skill, or in a root for all its skills. */
export const IGNORE_FILE = '.skillignore'

export const MAX_IGNORE_FILE_BYTES = 16_384
export const MAX_IGNORE_PATTERNS = 64
/** Most `*` in one segment of a pattern. With more, the regular expression can take seconds for one name. */
const MAX_STARS = 2
/** Most segments `**` in one pattern. With four, one path took minutes. */
const MAX_DOUBLE_STARS = 2
/** Paths with more segments are hidden. */
const MAX_PATH_SEGMENTS = 32

/** The library never forgets an answer: it is created again after this many. */
const MAX_KEPT_ANSWERS = 256

export interface IgnoreRules extends PathFilter {
  /** Why the file cannot be used, as the end of a sentence about it: its rules hide nothing. */
  readonly problem?: string
}

export interface IgnoreFile {
  readonly rules: IgnoreRules
  /** Links followed; undefined for nothing that can be asked. */
  readonly stamp: FileStamp | undefined
}

export interface SkillFilter extends PathFilter {
  readonly findings: readonly Finding[]
}

/** Reads an ignore file; undefined when it is gone. @throws {RefusedError} if the disk fails, or the file changes */
export async function readIgnoreFile (disk: Disk, folder: string): Promise<IgnoreFile | undefined> {
  const path = `${folder}/${IGNORE_FILE}`
  // Taken before the bytes are read, so that the next comparison notices an edit in between.
  const stamp = await stampAt(disk, path)
  try {
    const file = await openInside({ disk, folder, path: IGNORE_FILE }, MAX_IGNORE_FILE_BYTES)
    try {
      return { rules: parseIgnoreFile(await file.readAll()), stamp }
    } finally {
      await file.close()
    }
  } catch (error) {
    const refused = asRefused(error)
    if (isInconclusive(refused) || refused.refusal === 'changed') throw refused
    if (refused.refusal === 'not_found' && await disk.lstat(path) === undefined) return undefined
    return { rules: unusableRules(PROBLEMS[refused.refusal] ?? 'is not a regular file of its folder'), stamp }
  }
}

const PROBLEMS: Readonly<Partial<Record<Refusal, string>>> = {
  too_large: `has more than ${MAX_IGNORE_FILE_BYTES} bytes`,
  permission_denied: 'cannot be read: permission denied'
}

/** @param problem why the file cannot be used, as the end of a sentence about it */
export function unusableRules (problem: string, id = problem): IgnoreRules {
  return { id, problem, hides: () => false }
}

/**
 * Parses an ignore file in the syntax of gitignore(5). Number and shape of patterns are limited: a library turns each
 * into a regular expression, with which the author of a skill could block the service.
 */
export function parseIgnoreFile (bytes: Buffer): IgnoreRules {
  const id = sha256(bytes)
  if (!isUtf8(bytes)) return unusableRules('is not valid UTF-8', id)
  const lines = bytes.toString('utf8').split(/\r?\n/)
  const patterns = lines.filter((line) => line.trim() !== '' && !line.startsWith('#'))
  if (patterns.length > MAX_IGNORE_PATTERNS) return unusableRules(`has more than ${MAX_IGNORE_PATTERNS} patterns`, id)
  const heavy = lines.findIndex((line) => patterns.includes(line) && isHeavy(line)) + 1
  if (heavy > 0) return unusableRules(`has more than ${MAX_STARS} wildcards in one part of line ${heavy}`, id)
  const create = () => createIgnore({ ignorecase: false }).add(patterns)
  let ignore = create()
  let answers = 0
  return {
    id,
    hides (path, isFolder) {
      if (path.split('/').length > MAX_PATH_SEGMENTS) return true
      if (++answers % MAX_KEPT_ANSWERS === 0) ignore = create()
      return ignore.ignores(isFolder ? `${path}/` : path)
    }
  }
}

function isHeavy (line: string): boolean {
  const segments = line.split('/')
  return segments.filter((segment) => segment.includes('**')).length > MAX_DOUBLE_STARS ||
    segments.some((segment) => segment.split(/\*+/).length - 1 > MAX_STARS)
}

/**
 * Creates the filter of a skill; undefined without ignore files. A skill cannot show what its root hides. If an ignore
 * file cannot be used, only the main file is served.
 */
export function createSkillFilter (
  name: string, rootRules: IgnoreRules | undefined, own: IgnoreRules | undefined
): SkillFilter | undefined {
  if (rootRules === undefined && own === undefined) return undefined
  const files = [[`the ${IGNORE_FILE} of the skills folder`, rootRules], [IGNORE_FILE, own]] as const
  const findings = files.flatMap(([file, rules]) => rules?.problem === undefined
    ? []
    : finding('ignore_file_unusable', `${file} ${rules.problem}, so that only the main file is served`,
      'Write it in UTF-8, with few and simple patterns, as docs/configuration.md says'))
  return {
    id: sha256(`${rootRules?.id ?? ''}\n${own?.id ?? ''}`),
    findings,
    hides: (path, isFolder) => (findings.length > 0 && !isMainFile(path)) ||
      rootRules?.hides(`${name}/${path}`, isFolder) === true || own?.hides(path, isFolder) === true
  }
}
