import { MAX_ATTEMPTS } from '../shared/limits.ts'
import type { CatalogSkill } from '../shared/skill.ts'

/** Skills that are looked for by the names in their frontmatter. */
export interface NamedSkills {
  /** Names of the folders whose skills have this name in their frontmatter, and another one than the folder; as of the index, in order. */
  namedOtherwise (displayName: string): readonly string[]
  find (name: string): Promise<CatalogSkill | undefined>
  /** Compares the names in the frontmatter of all skills with the disk. */
  verifyDisplayNames (): Promise<void>
  /** Goes up with each difference that was found on the disk. */
  readonly changeCount: number
}

/**
 * The skill with this frontmatter name, else of this folder name. "Not found" needs a comparison of all skills, since
 * any of them may have taken the name a moment ago. If one changed meanwhile, all are compared again.
 */
export async function findByDisplayName (skills: NamedSkills, displayName: string): Promise<CatalogSkill | undefined> {
  let folder = await skills.find(displayName)
  for (let attempt = 0, changeCount = -1; attempt <= MAX_ATTEMPTS; attempt++) {
    if (folder?.metadata.name === displayName) return folder
    for (const name of skills.namedOtherwise(displayName)) {
      const found = await skills.find(name)
      if (found?.metadata.name === displayName) return found
    }
    if (changeCount === skills.changeCount) break
    changeCount = skills.changeCount
    await skills.verifyDisplayNames()
    folder = await skills.find(displayName)
  }
  return folder
}
