import type { Static } from '@sinclair/typebox'
import { LRUCache } from 'lru-cache'
import type { SkillArchive } from '../core/content/archive.ts'
import { coalesce, createSlicer } from '../core/async.ts'
import { fileError, SkillError } from '../core/errors.ts'
import { DISCOVERY_LOOK_FACTOR, MAX_CACHED_ARCHIVE_DIGESTS, MAX_DISCOVERY_LOOK_AGE_MS } from '../core/limits.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import type { CatalogSkill } from '../core/skill.ts'
import { DISCOVERY_SCHEMA_ID, type DiscoveryIndexSchema, type LegacyDiscoveryIndexSchema } from '../schemas/well-known.ts'
import { descriptionOf } from '../core/clients/discovery.ts'
import { MAIN_FILE, type Offer, readOffer } from './offer.ts'

export type DiscoveryIndex = Static<typeof DiscoveryIndexSchema>
export type LegacyDiscoveryIndex = Static<typeof LegacyDiscoveryIndexSchema>

/** Both indexes, of one look at all skills. The same objects while nothing changes. */
export interface DiscoveryIndexes {
  readonly '0.2.0': DiscoveryIndex
  readonly '0.1.0': LegacyDiscoveryIndex
}

/** What the last look at a skill came to. It holds while the catalog has the same skill and its files the same stamp. */
interface Look {
  readonly skill: CatalogSkill
  readonly stamp?: string | undefined
  readonly entry?: DiscoveryIndex['skills'][number]
  readonly legacyEntry?: LegacyDiscoveryIndex['skills'][number]
}

/**
 * The well-known indexes. A digest in an index is of all bytes of an archive, so the first look reads every file of every
 * skill; after that a look costs a few calls to the disk for each file, and only what has changed is read again.
 */
export class Discovery {
  readonly #skills: SkillManager
  /** By revision, from which the bytes of an archive follow. */
  readonly #archiveDigests = new LRUCache<string, Promise<string>>({ max: MAX_CACHED_ARCHIVE_DIGESTS })
  readonly #lookOnce = coalesce(() => this.#lookAtAll())
  readonly #unsubscribe: () => void
  #looks: ReadonlyMap<string, Look> = new Map()
  #indexes: DiscoveryIndexes = renderIndexes([])
  /** Until when the last look is good enough, by `performance.now()`. */
  #goodUntil = 0
  #changes = 0

  constructor (skills: SkillManager) {
    this.#skills = skills
    this.#unsubscribe = skills.subscribe(() => {
      this.#changes++
      this.#goodUntil = 0
    })
  }

  close (): void {
    this.#unsubscribe()
  }

  /** @throws {SkillError} without a root */
  async indexes (): Promise<DiscoveryIndexes> {
    if (performance.now() >= this.#goodUntil) await this.#lookOnce()
    return this.#indexes
  }

  /** Whether the index 0.1.0 lists a file, without a look at the others: a client asks for all of them at once. */
  async listsFile (name: string, file: string): Promise<boolean> {
    await this.indexes()
    return this.#looks.get(name)?.legacyEntry?.files.includes(file) ?? false
  }

  /**
   * The archive that the index lists for an offer.
   * @throws {SkillError} `file_io_error` when the skill is no longer as it was offered
   */
  async archive ({ skill, manifest, nameOf }: Offer): Promise<{ readonly archive: SkillArchive, readonly digest: string }> {
    const archive = await this.#skills.archive(skill.name, nameOf)
    if (archive.revision !== manifest.revision) throw fileError.ioError('.')
    return { archive, digest: await this.#digestOf(archive) }
  }

  async #lookAtAll (): Promise<void> {
    // The one before this may have ended a moment ago.
    if (performance.now() < this.#goodUntil) return
    const start = performance.now()
    const changes = this.#changes
    const yieldIfNeeded = createSlicer()
    const looks = new Map<string, Look>()
    for (const name of await this.#skills.list()) {
      const look = await this.#look(name)
      if (look !== undefined) looks.set(name, look)
      await yieldIfNeeded()
    }
    const isUnchanged = looks.size === this.#looks.size && [...looks].every(([name, look]) => this.#looks.get(name) === look)
    if (!isUnchanged) this.#indexes = renderIndexes([...looks.values()])
    this.#looks = looks
    if (changes !== this.#changes) return
    const end = performance.now()
    this.#goodUntil = end + Math.min((end - start) * DISCOVERY_LOOK_FACTOR, MAX_DISCOVERY_LOOK_AGE_MS)
  }

  /** One skill never takes the index down: what cannot be read now is as it was before. */
  async #look (name: string): Promise<Look | undefined> {
    const before = this.#looks.get(name)
    try {
      const skill = await this.#skills.find(name)
      if (skill === undefined) return undefined
      // Before anything is read: what changes from here on has another stamp the next time.
      const stamp = skill.valid ? await this.#skills.stamp(name) : ''
      if (before?.skill === skill && before.stamp !== undefined && before.stamp === stamp) return before
      return { skill, stamp, ...skill.valid && await this.#entriesOf(name) }
    } catch (error) {
      if (error instanceof SkillError) return before
      throw error
    }
  }

  async #entriesOf (name: string): Promise<Pick<Look, 'entry' | 'legacyEntry'>> {
    const offer = await readOffer(this.#skills, name)
    if (offer === undefined) return {}
    const { manifest, versions, nameOf } = offer
    const description = descriptionOf(offer.skill.frontmatter)
    const files = manifest.files.map(({ path }) => nameOf(path))
    return {
      ...versions.has('0.1.0') && { legacyEntry: { name, description, files: [MAIN_FILE, ...files.filter((file) => file !== MAIN_FILE)] } },
      ...versions.has('0.2.0') && { entry: await this.#entryOf(offer, description) }
    }
  }

  async #entryOf (offer: Offer, description: string): Promise<DiscoveryIndex['skills'][number]> {
    const { skill: { name }, document, manifest } = offer
    if (isSingleFile(offer)) {
      return { name, type: 'skill-md', description, url: `${name}/${hexOf(document.digest)}/${MAIN_FILE}`, digest: document.digest }
    }
    const digest = await this.#archiveDigests.get(manifest.revision) ?? (await this.archive(offer)).digest
    return { name, type: 'archive', description, url: `${name}/${hexOf(digest)}/archive.zip`, digest }
  }

  async #digestOf (archive: SkillArchive): Promise<string> {
    const { revision } = archive
    const known = this.#archiveDigests.get(revision)
    if (known !== undefined) return await known
    const digest = archive.digest()
    this.#archiveDigests.set(revision, digest)
    try {
      return await digest
    } catch (error) {
      this.#archiveDigests.delete(revision)
      throw error
    }
  }
}

/** A skill that is only its main file is offered as that, every other one as an archive. */
export function isSingleFile ({ manifest }: Offer): boolean {
  return manifest.files.length === 1
}

export function hexOf (digest: string): string {
  return digest.slice(digest.indexOf(':') + 1)
}

function renderIndexes (looks: readonly Look[]): DiscoveryIndexes {
  return {
    '0.2.0': { $schema: DISCOVERY_SCHEMA_ID, skills: looks.flatMap(({ entry }) => entry ?? []) },
    '0.1.0': { skills: looks.flatMap(({ legacyEntry }) => legacyEntry ?? []) }
  }
}
