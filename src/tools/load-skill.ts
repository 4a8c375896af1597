import { documentError, SkillError } from '../core/errors.ts'
import { FileContent } from '../core/files/file-content.ts'
import type { SkillSource } from '../core/skill-source.ts'
import type { Awaitable } from '../core/async.ts'
import type { CatalogSkill } from '../core/skill.ts'

/** A skill that changes between two looks is looked at again, this many times in all. */
const LOAD_ATTEMPTS = 8

/**
 * A skill and its main file in one and the same state.
 * @param name what the caller calls it
 * @param find looks for it anew
 * @throws {SkillError} when there is none, its main file cannot be read, or it never holds still
 */
export async function loadSkill (
  source: SkillSource, name: string, find: () => Awaitable<CatalogSkill | undefined>
): Promise<{ readonly skill: CatalogSkill, readonly content: FileContent }> {
  let skill = await find()
  for (let attempt = 0; attempt < LOAD_ATTEMPTS; attempt++) {
    if (skill === undefined) throw documentError.skillNotFound(name)
    const content = await readDocument(source, skill.name)
    if (content instanceof FileContent && content.digest === skill.digest) return { skill, content }
    const next = await find()
    // A failure counts only for the skill that the caller means: another one may have that name by now.
    if (content instanceof SkillError && next?.name === skill.name && next.digest === skill.digest) throw content
    skill = next
  }
  throw documentError.unreadable(name)
}

async function readDocument (source: SkillSource, name: string): Promise<FileContent | SkillError> {
  try {
    return await source.readDocument(name, 'SKILL.md')
  } catch (error) {
    if (error instanceof SkillError) return error
    throw error
  }
}
