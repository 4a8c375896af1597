import { isUsable } from '../core/format/findings.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { FileContent } from '../core/read/file-content.ts'
import type { SkillSource } from '../core/service.ts'
import type { CatalogSkill, Manifest } from '../core/shared/skill.ts'
import { type DiscoveryVersion, isListed, mainFileOf, wellKnownFindings } from '../core/listing/discovery.ts'

/** Clients ask for the main file under this name, whatever it is called on the disk. */
export const MAIN_FILE = 'SKILL.md'

/** A skill that is offered, in one state, and the indexes that it is in. */
export interface Installable {
  readonly skill: CatalogSkill
  readonly manifest: Manifest
  /** The main file. */
  readonly mainFile: FileContent
  readonly versions: ReadonlySet<DiscoveryVersion>
  /** What clients call a file of the manifest. */
  nameOf (path: string): string
}

/**
 * What the well-known indexes have of a skill; undefined for a skill that is not offered.
 * @throws {SkillError} when it cannot be read
 */
export async function readInstallable (
  skills: Pick<SkillSource, 'read'>, name: string
): Promise<Installable | undefined> {
  return await skills.read(name, installableIn)
}

/** What the indexes have of one state of a skill, for an answer that reads more of that state. */
export async function installableIn (state: SkillState): Promise<Installable | undefined> {
  const { skill } = state
  if (!isUsable(skill)) return undefined
  const manifest = await state.manifest()
  const mainFile = await state.mainFile()
  const main = mainFileOf(skill, manifest)
  const findings = wellKnownFindings(skill, manifest, mainFile.utf8)
  const versions = new Set((['0.1.0', '0.2.0'] as const).filter((version) => isListed(findings, version)))
  return { skill, manifest, mainFile, versions, nameOf: (path) => path === main ? MAIN_FILE : path }
}
