import type { Static } from '@sinclair/typebox'
import { LRUCache } from 'lru-cache'
import { coalesce, createSlicer, forEachInSlices } from '../core/shared/async.ts'
import type { SkillArchive } from '../core/content/archive.ts'
import type { Inspected } from '../core/content/manifest.ts'
import type { SkillState } from '../core/content/skill-state.ts'
import { SkillError, type SkillErrorCode } from '../core/shared/errors.ts'
import { atMost } from '../core/shared/heap.ts'
import { ownText } from '../core/shared/json.ts'
import type { SkillService, SkillSource } from '../core/skill-source.ts'
import { DISCOVERY_SCHEMA_ID, type DiscoveryIndexSchema, type LegacyDiscoveryIndexSchema } from '../schemas/well-known.ts'
import { MAIN_FILE, type Installable, installableIn, readInstallable } from './installable.ts'

/** How long changes are followed after the last question, in milliseconds. */
const DISCOVERY_IDLE_MS = 60_000

/** Digests of archives kept by revision. About 250 bytes each. */
const MAX_CACHED_ARCHIVE_DIGESTS = 20_000

/** Errors of a state of a skill that is not there for the caller. Others say that the disk fails. */
const NOT_SERVED: ReadonlySet<SkillErrorCode> = new Set(['invalid_skill_name', 'revision_changed', 'skill_not_found'])

export type DiscoveryIndex = Static<typeof DiscoveryIndexSchema>
export type LegacyDiscoveryIndex = Static<typeof LegacyDiscoveryIndexSchema>

/** Of what lies at an address that names its digest. Not `public`: a cache behind somebody's authentication keeps nothing. */
export const IMMUTABLE = 'max-age=31536000, immutable'

/** Both indexes, of the same skills. The same objects while nothing changes. */
interface DiscoveryIndexes {
  readonly '0.2.0': DiscoveryIndex
  readonly '0.1.0': LegacyDiscoveryIndex
}

/** What the indexes have of a skill. */
interface Entries {
  /** The state of all its files when the entries were made; undefined when they have to be made again. */
  readonly state: Inspected | undefined
  readonly entry?: DiscoveryIndex['skills'][number]
  readonly legacyEntry?: LegacyDiscoveryIndex['skills'][number]
}

type DiscoverySkills = Pick<SkillService, 'at' | 'inspect' | 'keptRevisions' | 'list' | 'observe' | 'read' | 'readListed' | 'subscribe'>

/**
 * The well-known indexes. A digest in an index is of all bytes of an archive, so the first index reads every file of every
 * skill. While clients ask at least once in DISCOVERY_IDLE_MS, later ones compare only skills that may have changed. An index
 * of 10,000 unchanged skills then costs a listing of the roots.
 */
export class Discovery {
  readonly #skills: DiscoverySkills
  readonly #onRead: ((done: number, total: number) => void) | undefined
  /** By revision, from which the bytes of an archive follow. */
  readonly #archiveDigests = new LRUCache<string, Promise<string>>(atMost(MAX_CACHED_ARCHIVE_DIGESTS))
  readonly #refresh = coalesce(() => this.#refreshOnce())
  readonly #entries = new Map<string, Entries>()
  /** Names of skills that may be different. */
  readonly #touched = new Set<string>()
  #indexes: DiscoveryIndexes = renderIndexes([])
  /** What the indexes are of: the same array while no name comes or goes. */
  #names: readonly string[] = []
  #stops: ReadonlyArray<() => void> = []
  #idle: NodeJS.Timeout | undefined

  /** @param onRead receives how many skills were read, and of how many */
  constructor (skills: DiscoverySkills, onRead?: (done: number, total: number) => void) {
    this.#skills = skills
    this.#onRead = onRead
  }

  close (): void {
    clearTimeout(this.#idle)
    for (const stop of this.#stops) stop()
    this.#stops = []
  }

  /** @throws {SkillError} without a root */
  async indexes (): Promise<DiscoveryIndexes> {
    this.#follow()
    await this.#refresh()
    return this.#indexes
  }

  /**
   * The indexes of one skill alone, read anew: empty where a version does not list it.
   * @param base where the addresses of the index 0.2.0 lie, relative to it
   * @throws {SkillError} without the skill
   */
  async indexesOf (name: string, base: string): Promise<DiscoveryIndexes> {
    const { entry, legacyEntry } = await this.#skills.read(name, (state) => this.#entriesIn(state))
    return renderIndexes([{ ...entry && { entry: { ...entry, url: base + entry.url } }, ...legacyEntry && { legacyEntry } }])
  }

  /** Whether the index 0.1.0 lists a file. */
  async listsFile (name: string, file: string): Promise<boolean> {
    await this.indexes()
    return this.#entries.get(name)?.legacyEntry?.files.includes(file) ?? false
  }

  /** The skill behind an address of the index: as it is now, or in a revision that is kept. */
  async findInstallable (name: string, isMeant: (installable: Installable) => boolean | Promise<boolean>): Promise<Installable | undefined> {
    const present = await this.#findIn(this.#skills, name, isMeant).catch((error: unknown) => {
      if (error instanceof SkillError && this.#skills.keptRevisions(name).length > 0) return undefined
      throw error
    })
    if (present !== undefined) return present
    for (const revision of this.#skills.keptRevisions(name)) {
      const installable = await this.#findIn(this.#skills.at(revision), name, isMeant)
      if (installable !== undefined) return installable
    }
    return undefined
  }

  /** Undefined for a state that is not served: a trust policy may refuse one revision and let the next one through. */
  async #findIn (skills: Pick<SkillSource, 'read'>, name: string, isMeant: (installable: Installable) => boolean | Promise<boolean>): Promise<Installable | undefined> {
    try {
      const installable = await readInstallable(skills, name)
      return installable?.versions.has('0.2.0') === true && await isMeant(installable) ? installable : undefined
    } catch (error) {
      if (error instanceof SkillError && NOT_SERVED.has(error.code)) return undefined
      throw error
    }
  }

  /** The archive that the index lists for a skill, in the revision that was read. */
  async archive ({ skill, manifest: { revision }, nameOf }: Installable): Promise<{ readonly archive: SkillArchive, readonly digest: string }> {
    const archive = await this.#skills.at(revision).archive(skill.name, nameOf)
    return { archive, digest: await this.#digestOf(archive) }
  }

  #follow (): void {
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => { this.close() }, DISCOVERY_IDLE_MS).unref()
    if (this.#stops.length > 0) return
    for (const name of this.#entries.keys()) this.#touched.add(name)
    this.#stops = [
      this.#skills.subscribe(({ added, changed, removed }) => { this.#touch([...added, ...changed, ...removed]) }),
      this.#skills.observe((names = this.#entries.keys()) => { this.#touch(names) })
    ]
  }

  #touch (names: Iterable<string>): void {
    for (const name of names) this.#touched.add(name)
  }

  async #refreshOnce (): Promise<void> {
    const yieldIfNeeded = createSlicer()
    const names = await this.#skills.list()
    let isChanged = names !== this.#names
    if (isChanged) {
      const present = new Set(names)
      for (const name of this.#entries.keys()) if (!present.has(name)) this.#entries.delete(name)
    }
    const due = names.filter((name) => this.#entries.get(name)?.state === undefined || this.#touched.has(name))
    for (const [index, name] of due.entries()) {
      this.#onRead?.(index, due.length)
      this.#touched.delete(name)
      const before = this.#entries.get(name)
      const now = await this.#entriesOf(name, before)
      if (now !== undefined) this.#entries.set(name, now)
      isChanged ||= now !== before
      await yieldIfNeeded()
    }
    if (isChanged) this.#indexes = renderIndexes(names.flatMap((name) => this.#entries.get(name) ?? []))
    this.#names = names
  }

  /** One skill never takes the index down: what cannot be read now stays as it was before. */
  async #entriesOf (name: string, before: Entries | undefined): Promise<Entries | undefined> {
    try {
      if (before?.state !== undefined && await this.#skills.inspect(name, before.state) === before.state) return before
      const { revision, ...entries } = await this.#skills.readListed(name, (state) => this.#entriesIn(state))
      const state = await this.#skills.inspect(name)
      if (state !== undefined && 'ended' in state) return this.#keep(name, before)
      // A state too young to be trusted, or another one than the entries are of, is compared again at the next question.
      const isTrusted = state?.fingerprint !== undefined && (revision === undefined || state.revision === revision)
      return { state: isTrusted ? state : undefined, ...entries }
    } catch (error) {
      if (error instanceof SkillError) return this.#keep(name, before)
      throw error
    }
  }

  /** What is known stands, and is compared again at the next question. */
  #keep (name: string, before: Entries | undefined): Entries | undefined {
    this.#touched.add(name)
    return before
  }

  /** @returns of which revision they are; none for a skill that is not valid */
  async #entriesIn (state: SkillState): Promise<Omit<Entries, 'state'> & { readonly revision?: string }> {
    const installable = await installableIn(state)
    if (installable === undefined) return {}
    const { skill: { name, frontmatter }, manifest, versions, nameOf } = installable
    const description = ownText(frontmatter, 'description')
    const files = manifest.files.map(({ path }) => nameOf(path))
    return {
      revision: manifest.revision,
      ...versions.has('0.1.0') && {
        legacyEntry: { name, description, version: manifest.revision, files: [MAIN_FILE, ...files.filter((file) => file !== MAIN_FILE)] }
      },
      ...versions.has('0.2.0') && { entry: await this.#entryOf(state, installable, description) }
    }
  }

  async #entryOf (state: SkillState, installable: Installable, description: string): Promise<DiscoveryIndex['skills'][number]> {
    const { skill: { name }, mainFile, manifest, nameOf } = installable
    if (isSingleFile(installable)) {
      return { name, type: 'skill-md', description, url: `${name}/${hexOf(mainFile.digest)}/${MAIN_FILE}`, digest: mainFile.digest }
    }
    const digest = await this.#archiveDigests.get(manifest.revision) ?? await this.#digestOf(await state.archive(nameOf))
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

/** A skill that is only its main file is listed as that, every other one as an archive. */
export function isSingleFile ({ manifest }: Installable): boolean {
  return manifest.files.length === 1
}

export function hexOf (digest: string): string {
  return digest.slice(digest.indexOf(':') + 1)
}

/** An index as JSON. That of 10,000 skills takes 25 ms, so it is made in slices. */
export async function indexText ({ skills, ...rest }: { readonly skills: readonly object[] }): Promise<string> {
  const texts: string[] = []
  await forEachInSlices(skills, (skill) => { texts.push(JSON.stringify(skill)) })
  return `${JSON.stringify({ ...rest, skills: [] }).slice(0, -2)}${texts.join(',')}]}`
}

function renderIndexes (entries: ReadonlyArray<Omit<Entries, 'state'>>): DiscoveryIndexes {
  return {
    '0.2.0': { $schema: DISCOVERY_SCHEMA_ID, skills: entries.flatMap(({ entry }) => entry ?? []) },
    '0.1.0': { skills: entries.flatMap(({ legacyEntry }) => legacyEntry ?? []) }
  }
}
