import { documentError } from '../core/errors.ts'
import type { FileContent } from '../core/file-content.ts'
import type { Awaitable, SkillSource } from '../core/skill-source.ts'
import type { CatalogueSkill } from '../core/skill.ts'

/** A skill that changes between two looks is looked at again, this many times in all. */
const LOAD_ATTEMPTS = 3

/**
 * A skill and its main file in one and the same state (K53).
 * @param name what the caller calls it
 * @param find looks for it anew
 * @throws {SkillError} when there is none, its main file cannot be read, or it never holds still
 */
export async function loadSkill (
  source: SkillSource, name: string, find: () => Awaitable<CatalogueSkill | undefined>
): Promise<{ readonly skill: CatalogueSkill, readonly content: FileContent }> {
  for (let attempt = 0; attempt < LOAD_ATTEMPTS; attempt++) {
    const skill = await find()
    if (skill === undefined) throw documentError.skillNotFound(name)
    const content = await source.readDocument(skill.name, 'SKILL.md')
    if (skill.digest === content.digest) return { skill, content }
  }
  throw documentError.unreadable(name)
}
