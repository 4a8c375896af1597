import { setTimeout as pause } from 'node:timers/promises'
import type { Catalog } from './catalog.ts'
import type { IndexedSkill } from './read-skill.ts'
import { SkillError, skillError } from './shared/errors.ts'

/** How often a skill is read again when it changes while it is read, and the pause before, in milliseconds. */
const MAX_READS = 3
const CHANGE_PAUSE_MS = 20

/**
 * Finds a skill and makes an answer of it, again if the skill changed meanwhile.
 * @throws {SkillError} `skill_changing` when it changes each time
 */
export async function readConsistently<T> (
  catalog: Catalog, name: string, find: () => Promise<IndexedSkill>, answer: (skill: IndexedSkill) => Promise<T>
): Promise<T> {
  for (let count = 1; ; count++) {
    let found: IndexedSkill | undefined
    try {
      found = await find()
      return await answer(found)
    } catch (error) {
      if (!(error instanceof SkillError)) throw error
      // What was refused has just been read; another error may come from a folder that was replaced meanwhile.
      const isSame = found === undefined || found.refused !== undefined || await catalog.isStill(found)
      if (error.code !== 'skill_changing' && isSame) throw error
      if (count === MAX_READS) throw error.code === 'skill_changing' ? error : skillError.changing(name)
      await pause(CHANGE_PAUSE_MS * count)
    }
  }
}
