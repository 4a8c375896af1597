import type { Static } from '@sinclair/typebox'
import { LRUCache } from 'lru-cache'
import type { SkillArchive } from '../core/revisions/archive.ts'
import type { SkillState } from '../core/revisions/state.ts'
import { isUsable } from '../core/format/findings.ts'
import { SkillError, type SkillErrorCode } from '../core/shared/errors.ts'
import { ownText } from '../core/shared/json.ts'
import type { CatalogSkill, Manifest } from '../core/shared/skill.ts'
import type { SkillService, SkillSource } from '../core/service.ts'
import {
  DISCOVERY_SCHEMA_ID, type DiscoveryIndexSchema, type LegacyDiscoveryIndexSchema
} from '../schemas/well-known.ts'
import { MAIN_FILE, type Installable, installableIn, readInstallable } from './installable.ts'

/** Digests of archives kept by revision. About 250 bytes each. */
const MAX_CACHED_ARCHIVE_DIGESTS = 20_000

/** Errors of a state of a skill that is not there for the caller. Others say that the disk fails. */
const NOT_SERVED: ReadonlySet<SkillErrorCode> = new Set(['invalid_skill_name', 'revision_changed', 'skill_not_found'])

export type DiscoveryIndex = Static<typeof DiscoveryIndexSchema>
export type LegacyDiscoveryIndex = Static<typeof LegacyDiscoveryIndexSchema>

/** For addresses that name their digest. Not `public`: a cache behind an authenticating proxy keeps nothing. */
export const IMMUTABLE = 'max-age=31536000, immutable'

/** Both indexes, of the same skills. */
interface DiscoveryIndexes {
  readonly '0.2.0': DiscoveryIndex
  readonly '0.1.0': LegacyDiscoveryIndex
}

/** What the indexes have of a skill; empty for a skill that is not valid. */
interface Entries {
  readonly entry?: DiscoveryIndex['skills'][number]
  readonly legacyEntry?: LegacyDiscoveryIndex['skills'][number]
}

type DiscoverySkills = Pick<SkillService, 'at' | 'keptRevisions' | 'list' | 'read'>

type IsMeant = (installable: Installable) => boolean | Promise<boolean>

/**
 * The well-known indexes. A digest in an index is of all bytes of an archive, so the first index reads every file of
 * every skill. Later ones are the same objects while the revision of the catalog is the same.
 */
export class Discovery {
  readonly #skills: DiscoverySkills
  readonly #onRead: ((done: number, total: number) => void) | undefined
  /** By revision, from which the bytes of an archive follow. */
  readonly #archiveDigests = new LRUCache<string, Promise<string>>({
    maxSize: MAX_CACHED_ARCHIVE_DIGESTS, sizeCalculation: () => 1
  })

  readonly #entries = new WeakMap<Manifest, { readonly skill: CatalogSkill, readonly entries: Entries }>()
  /** The entries of the last index, by name. */
  #known: ReadonlyMap<string, Entries> = new Map()
  #making: Promise<DiscoveryIndexes> | undefined
  #made: { readonly revision: string | undefined, readonly indexes: DiscoveryIndexes } | undefined

  /** @param onRead receives how many skills were read, and of how many */
  constructor (skills: DiscoverySkills, onRead?: (done: number, total: number) => void) {
    this.#skills = skills
    this.#onRead = onRead
  }

  /**
   * @param revision of the whole catalog, as far as it is known
   * @throws {SkillError} without a root
   */
  async indexes (revision?: () => string | undefined): Promise<DiscoveryIndexes> {
    const before = revision?.()
    if (before !== undefined && this.#made?.revision === before) return this.#made.indexes
    this.#making ??= this.#make().finally(() => { this.#making = undefined })
    const indexes = await this.#making
    // Made while the catalog changed, they may be of neither revision.
    this.#made = { indexes, revision: revision?.() === before ? before : undefined }
    return indexes
  }

  /**
   * The indexes of one skill alone: empty where a version does not list it.
   * @param base where the addresses of the index 0.2.0 lie, relative to it
   * @throws {SkillError} without the skill
   */
  async indexesOf (name: string, base: string): Promise<DiscoveryIndexes> {
    const { entry, legacyEntry } = await this.#skills.read(name, (state) => this.#entriesIn(state))
    const relative = entry && { entry: { ...entry, url: base + entry.url } }
    return renderIndexes([{ ...relative, ...legacyEntry && { legacyEntry } }])
  }

  /** Whether the index 0.1.0 lists a file. */
  async listsFile (name: string, file: string): Promise<boolean> {
    try {
      const { legacyEntry } = await this.#skills.read(name, (state) => this.#entriesIn(state))
      return legacyEntry?.files.includes(file) ?? false
    } catch (error) {
      if (error instanceof SkillError && NOT_SERVED.has(error.code)) return false
      throw error
    }
  }

  /** The skill behind an address of the index: as it is now, or in a revision that is kept. */
  async findInstallable (name: string, isMeant: IsMeant): Promise<Installable | undefined> {
    const kept = this.#skills.keptRevisions(name)
    const present = await this.#findIn(this.#skills, name, isMeant).catch((error: unknown) => {
      if (error instanceof SkillError && kept.length > 0) return undefined
      throw error
    })
    if (present !== undefined) return present
    for (const revision of kept) {
      const installable = await this.#findIn(this.#skills.at(revision), name, isMeant)
      if (installable !== undefined) return installable
    }
    return undefined
  }

  /** Undefined for a state that is not served: a trust policy may refuse one revision and admit the next one. */
  async #findIn (skills: Pick<SkillSource, 'read'>, name: string, isMeant: IsMeant): Promise<Installable | undefined> {
    try {
      const installable = await readInstallable(skills, name)
      return installable?.versions.has('0.2.0') === true && await isMeant(installable) ? installable : undefined
    } catch (error) {
      if (error instanceof SkillError && NOT_SERVED.has(error.code)) return undefined
      throw error
    }
  }

  /** The archive that the index lists for a skill, in the revision that was read. */
  async archive (
    { skill, manifest: { revision }, nameOf }: Installable
  ): Promise<{ readonly archive: SkillArchive, readonly digest: string }> {
    const archive = await this.#skills.at(revision).archive(skill.name, nameOf)
    return { archive, digest: await this.#digestOf(archive) }
  }

  async #make (): Promise<DiscoveryIndexes> {
    const names = await this.#skills.list()
    const known = new Map<string, Entries>()
    for (const [index, name] of names.entries()) {
      this.#onRead?.(index, names.length)
      const entries = await this.#entriesOf(name)
      if (entries !== undefined) known.set(name, entries)
    }
    this.#known = known
    return renderIndexes([...known.values()])
  }

  /** One skill never takes the index down: what cannot be read now stays as it was before. */
  async #entriesOf (name: string): Promise<Entries | undefined> {
    try {
      return await this.#skills.read(name, (state) => this.#entriesIn(state))
    } catch (error) {
      if (!(error instanceof SkillError)) throw error
      return NOT_SERVED.has(error.code) ? undefined : this.#known.get(name)
    }
  }

  async #entriesIn (state: SkillState): Promise<Entries> {
    const { skill } = state
    if (!isUsable(skill)) return {}
    const manifest = await state.manifest()
    const before = this.#entries.get(manifest)
    if (before?.skill === skill) return before.entries
    const entries = await this.#makeEntries(state)
    this.#entries.set(manifest, { skill, entries })
    return entries
  }

  async #makeEntries (state: SkillState): Promise<Entries> {
    const installable = await installableIn(state)
    if (installable === undefined) return {}
    const { skill: { name, frontmatter }, manifest, versions, nameOf } = installable
    const description = ownText(frontmatter, 'description')
    const others = manifest.files.map(({ path }) => nameOf(path)).filter((file) => file !== MAIN_FILE)
    const legacyEntry = { name, description, version: manifest.revision, files: [MAIN_FILE, ...others] }
    return {
      ...versions.has('0.1.0') && { legacyEntry },
      ...versions.has('0.2.0') && { entry: await this.#entryOf(state, installable, description) }
    }
  }

  async #entryOf (state: SkillState, installable: Installable, description: string) {
    const { skill: { name }, mainFile: { digest }, manifest, nameOf } = installable
    if (isSingleFile(installable)) {
      return { name, type: 'skill-md' as const, description, url: `${name}/${hexOf(digest)}/${MAIN_FILE}`, digest }
    }
    const known = await this.#archiveDigests.get(manifest.revision)
    const ofArchive = known ?? await this.#digestOf(await state.archive(nameOf))
    const url = `${name}/${hexOf(ofArchive)}/archive.zip`
    return { name, type: 'archive' as const, description, url, digest: ofArchive }
  }

  async #digestOf (archive: SkillArchive): Promise<string> {
    const { revision } = archive
    const digest = this.#archiveDigests.get(revision) ?? archive.digest()
    this.#archiveDigests.set(revision, digest)
    try {
      return await digest
    } catch (error) {
      this.#archiveDigests.delete(revision)
      throw error
    }
  }
}

/** A skill that is only its main file is listed as that, every other one as an archive. */
export function isSingleFile ({ manifest }: Installable): boolean {
  return manifest.files.length === 1
}

export function hexOf (digest: string): string {
  return digest.slice(digest.indexOf(':') + 1)
}

function renderIndexes (entries: readonly Entries[]): DiscoveryIndexes {
  return {
    '0.2.0': { $schema: DISCOVERY_SCHEMA_ID, skills: entries.flatMap(({ entry }) => entry ?? []) },
    '0.1.0': { skills: entries.flatMap(({ legacyEntry }) => legacyEntry ?? []) }
  }
}
