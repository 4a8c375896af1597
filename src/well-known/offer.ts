import type { FileContent } from '../core/files/file-content.ts'
import type { Manifest } from '../core/content/manifest.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import type { CatalogSkill } from '../core/skill.ts'
import { type DiscoveryVersion, isOffered, mainFileOf, wellKnownFindings } from '../core/clients/discovery.ts'

/** Clients ask for the main file under this name, whatever it is called on the disk. */
export const MAIN_FILE = 'SKILL.md'

/** A valid skill in one state, and the indexes that it is in. */
export interface Offer {
  readonly skill: CatalogSkill
  readonly manifest: Manifest
  /** The main file. */
  readonly document: FileContent
  readonly versions: ReadonlySet<DiscoveryVersion>
  /** What clients call a file of the manifest. */
  nameOf (path: string): string
}

/** How often a skill is read anew when it changes between its parts. */
const MAX_TURNS = 3

/**
 * What the well-known indexes have of a skill; undefined for one that is not valid, or never holds still.
 * @throws {SkillError} when it cannot be read
 */
export async function readOffer (skills: SkillManager, name: string): Promise<Offer | undefined> {
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const skill = await skills.find(name)
    if (skill?.valid !== true) return undefined
    const manifest = await skills.manifest(name)
    const document = await skills.readMainFile(name, MAIN_FILE)
    const main = mainFileOf(skill, manifest)
    const listed = manifest.files.find(({ path }) => path === main)
    // All that is said of the skill is of one state.
    if (skill.digest !== document.digest || (listed !== undefined && listed.digest !== document.digest)) continue
    const findings = wellKnownFindings(skill, manifest, document.utf8)
    const versions = new Set((['0.1.0', '0.2.0'] as const).filter((version) => isOffered(findings, version)))
    return { skill, manifest, document, versions, nameOf: (path) => path === main ? MAIN_FILE : path }
  }
  return undefined
}
