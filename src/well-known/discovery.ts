import type { Static } from '@sinclair/typebox'
import { LRUCache } from 'lru-cache'
import type { ZipArchive } from '../archive/zip-writer.ts'
import { isUsable } from '../core/format/findings.ts'
import type { FileContent } from '../core/read/file-content.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { View } from '../core/view.ts'
import { SkillError, type SkillErrorCode } from '../core/shared/errors.ts'
import { ownText } from '../core/shared/json.ts'
import type { Manifest } from '../core/shared/skill.ts'
import { isListed, mainFileOf, wellKnownFindings } from '../verdicts/rules/discovery-index.ts'
import {
  DISCOVERY_SCHEMA_ID, type DiscoveryIndexSchema, type LegacyDiscoveryIndexSchema
} from '../schemas/well-known.ts'

/** Most files of all skills whose entries are kept. */
const MAX_CACHED_FILES = 500_000

/** Codes of errors for a state that does not exist for the caller. Other codes mean that the disk fails. */
const NOT_SERVED: ReadonlySet<SkillErrorCode> = new Set(['invalid_skill_name', 'revision_changed', 'skill_not_found'])

/** Name by which clients request the main file, whatever it is called on the disk. */
const MAIN_FILE = 'SKILL.md'

export type DiscoveryIndex = Static<typeof DiscoveryIndexSchema>
export type LegacyDiscoveryIndex = Static<typeof LegacyDiscoveryIndexSchema>

/** `Cache-Control` of addresses with digests. Not `public`: a cache behind an authenticating proxy keeps nothing. */
export const IMMUTABLE = 'max-age=31536000, immutable'

interface DiscoveryIndexes {
  readonly '0.2.0': DiscoveryIndex
  readonly '0.1.0': LegacyDiscoveryIndex
}

/** Entries of one state of a skill in the indexes; empty for a skill that clients do not accept. */
interface Entries {
  readonly entry?: DiscoveryIndex['skills'][number]
  readonly legacyEntry?: LegacyDiscoveryIndex['skills'][number]
  /** Whether files of the skill are still being read; the next index may have it. */
  readonly isPending?: boolean
}

/** Content at an address of the index 0.2.0: the main file of a skill that has no other file, or an archive. */
export type Artifact =
  { readonly revision: string, readonly content: FileContent } |
  { readonly revision: string, readonly archive: ZipArchive }

type DiscoverySkills = Pick<View, 'at' | 'keptRevisions' | 'list' | 'read'>

/**
 * Makes the well-known indexes. An index has the digests of whole archives, so the first one reads every file of every
 * skill. Later ones are the same objects while the revision of the catalog is the same.
 */
export class Discovery {
  readonly #skills: DiscoverySkills
  readonly #isComplete: boolean
  /** Entries by name and revision, which determine them. */
  readonly #entries = new LRUCache<string, Promise<Entries>>({ maxSize: MAX_CACHED_FILES })
  /** The entries of the last index, by name. */
  #known: ReadonlyMap<string, Entries> = new Map()
  #making: Promise<DiscoveryIndexes> | undefined
  #made: { readonly revision: string | undefined, readonly indexes: DiscoveryIndexes } | undefined

  /** @param isComplete whether indexes wait for skills that take long to read, rather than leave them out */
  constructor (skills: DiscoverySkills, { isComplete = false } = {}) {
    this.#skills = skills
    this.#isComplete = isComplete
  }

  /**
   * @param revision returns the revision of the whole catalog, if it is known
   * @throws {SkillError} without a root
   */
  async indexes (revision?: () => string | undefined): Promise<DiscoveryIndexes> {
    // The revision of the catalog does not change if an empty root disappears; `list` throws then.
    await this.#skills.list()
    const before = revision?.()
    if (before !== undefined && this.#made?.revision === before) return this.#made.indexes
    this.#making ??= this.#make().finally(() => { this.#making = undefined })
    const indexes = await this.#making
    // Indexes that were made while the catalog changed may match neither revision.
    const isWhole = ![...this.#known.values()].some(({ isPending }) => isPending === true)
    this.#made = { indexes, revision: isWhole && revision?.() === before ? before : undefined }
    return indexes
  }

  /**
   * Returns the indexes of one skill: empty if a version does not list it.
   * @param base address of the artifacts, relative to the index 0.2.0
   * @throws {SkillError} if there is no such skill
   */
  async indexesOf (name: string, base: string): Promise<DiscoveryIndexes> {
    const { entry, legacyEntry } = await this.#skills.read(name, (state) => this.#entriesIn(state))
    const relative = entry && { entry: { ...entry, url: base + entry.url } }
    return renderIndexes([{ ...relative, ...legacyEntry && { legacyEntry } }])
  }

  /** Whether the index 0.1.0 lists a file. */
  async listsFile (name: string, file: string): Promise<boolean> {
    const entries = await unlessAbsent(() => this.#skills.read(name, (state) => this.#entriesIn(state)))
    return entries?.legacyEntry?.files.includes(file) ?? false
  }

  /**
   * Finds what an address of the index 0.2.0 names, in the present revision of the skill or in one that is kept.
   * @param digest hexadecimal
   */
  async findArtifact (name: string, type: 'skill-md' | 'archive', digest: string): Promise<Artifact | undefined> {
    const find = async (skills: Pick<View, 'read'>): Promise<Artifact | undefined> =>
      await unlessAbsent(() => skills.read(name, async (state) => {
        const { entry } = await this.#entriesIn(state)
        if (entry?.type !== type || hexOf(entry.digest) !== digest) return undefined
        const { revision } = await state.manifest()
        if (type === 'skill-md') return { revision, content: await state.mainFile() }
        return { revision, archive: await state.archive(await namesIn(state)) }
      }))
    const kept = this.#skills.keptRevisions(name)
    const present = await find(this.#skills).catch((error: unknown) => {
      if (error instanceof SkillError && kept.length > 0) return undefined
      throw error
    })
    if (present !== undefined) return present
    for (const revision of kept) {
      const artifact = await find(this.#skills.at(revision))
      if (artifact !== undefined) return artifact
    }
    return undefined
  }

  async #make (): Promise<DiscoveryIndexes> {
    const names = await this.#skills.list()
    const known = new Map<string, Entries>()
    for (const name of names) {
      const entries = await this.#entriesOf(name)
      if (entries !== undefined) known.set(name, entries)
    }
    this.#known = known
    return renderIndexes([...known.values()])
  }

  /** Returns the entries of a skill. One that cannot be read now keeps those of the last index. */
  async #entriesOf (name: string): Promise<Entries | undefined> {
    try {
      return await unlessAbsent(() => this.#skills.read(name, async (state) => {
        const isReady = this.#isComplete || !isUsable(state.skill) || await state.listedSnapshot() !== undefined
        return isReady ? await this.#entriesIn(state) : { isPending: true }
      }))
    } catch (error) {
      if (error instanceof SkillError) return this.#known.get(name)
      throw error
    }
  }

  async #entriesIn (state: SkillState): Promise<Entries> {
    const { skill } = state
    if (!isUsable(skill)) return {}
    const manifest = await state.manifest()
    const key = `${skill.name} ${manifest.revision}`
    const known = this.#entries.get(key)
    if (known !== undefined) return await known
    const made = this.#makeEntries(state, manifest)
    this.#entries.set(key, made, { size: manifest.files.length + 1 })
    made.catch(() => { this.#entries.delete(key) })
    return await made
  }

  async #makeEntries (state: SkillState, manifest: Manifest): Promise<Entries> {
    const { skill: { name, frontmatter } } = state
    const mainFile = await state.mainFile()
    const findings = [...state.skill.findings, ...wellKnownFindings(state.skill, manifest, mainFile.utf8)]
    const description = ownText(frontmatter, 'description')
    const nameOf = await namesIn(state)
    const others = manifest.files.map(({ path }) => nameOf(path)).filter((file) => file !== MAIN_FILE)
    const legacyEntry = { name, description, version: manifest.revision, files: [MAIN_FILE, ...others] }
    const legacy = { ...isListed(findings, '0.1.0') && { legacyEntry } }
    if (!isListed(findings, '0.2.0')) return legacy
    // A skill without other files is listed as its main file, every other one as an archive.
    const [type, file, digest] = manifest.files.length === 1
      ? ['skill-md' as const, MAIN_FILE, mainFile.digest]
      : ['archive' as const, 'archive.zip', await (await state.archive(nameOf)).digest()]
    return { ...legacy, entry: { name, type, description, url: `${name}/${hexOf(digest)}/${file}`, digest } }
  }
}

/** Returns a function that maps paths to the names that clients use. */
async function namesIn (state: SkillState): Promise<(path: string) => string> {
  const main = mainFileOf(state.skill, await state.manifest())
  return (path) => path === main ? MAIN_FILE : path
}

/** Returns undefined for a state that is not served: a trust policy may refuse one revision and accept the next one. */
async function unlessAbsent<T> (read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof SkillError && NOT_SERVED.has(error.code)) return undefined
    throw error
  }
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
