import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { mainFileError, SkillError } from '../core/shared/errors.ts'
import { MAX_MAIN_FILE_BYTES } from '../core/shared/limits.ts'
import { preventsUse } from '../core/format/findings.ts'
import { parseSkillBytes } from '../core/format/main-file.ts'
import type { Frontmatter, SkillMetadata } from '../core/shared/skill.ts'
import { decodeUtf8 } from '../core/read/decode.ts'
import { asRefused } from '../core/read/refused.ts'
import { mainFileSentence } from '../core/revisions/refusal-sentences.ts'

/** The result of `parseSkillFile`, as its source document defines it. */
export interface ParsedSkillFile {
  readonly frontmatter: Frontmatter
  /** The whole file, frontmatter included, verbatim; empty when it cannot be read. */
  readonly content: string
  /** `type` is always `project`: a path alone does not tell. */
  readonly skillMetadata: SkillMetadata
  /** The messages of the findings that break Wave's rules, or the one reason why the file cannot be read. */
  readonly validationErrors: string[]
  readonly isValid: boolean
}

/** Reads and checks one main file. Never throws: a file that cannot be read has a validation error. */
export function parseSkillFile (filePath: string): ParsedSkillFile {
  const path = resolve(filePath)
  const skillPath = dirname(path)
  const folderName = basename(skillPath)
  const located = { type: 'project', skillPath, path } as const

  const read = readMainFile(path, folderName)
  if (read instanceof SkillError) {
    return {
      frontmatter: {},
      content: '',
      skillMetadata: { name: folderName, description: '', ...located },
      validationErrors: [read.message],
      isValid: false
    }
  }
  const { frontmatter, summary, findings } = parseSkillBytes(read.bytes, folderName)
  const validationErrors = findings.filter(preventsUse).map(({ message }) => message)
  return {
    frontmatter,
    content: read.content,
    skillMetadata: { ...summary, ...located },
    validationErrors,
    isValid: validationErrors.length === 0
  }
}

/** Reads a regular UTF-8 file within the limit. O_NONBLOCK keeps a FIFO from blocking the caller. */
function readMainFile (path: string, folderName: string): { bytes: Buffer, content: string } | SkillError {
  let descriptor: number | undefined
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stats = fstatSync(descriptor)
    if (!stats.isFile()) return mainFileError.notFound(folderName)
    if (stats.size > MAX_MAIN_FILE_BYTES) return mainFileError.tooLarge(folderName)
    const bytes = readFileSync(descriptor)
    const content = decodeUtf8(bytes)
    return content === undefined ? mainFileError.notUtf8(folderName) : { bytes, content }
  } catch (error) {
    return mainFileSentence(asRefused(error), folderName)
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}
