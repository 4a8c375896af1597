import { setTimeout } from 'node:timers/promises'
import { type Awaitable, coalesce, createSlicer, whenReady } from '../ground/async.ts'
import type { Disk } from '../disk/disk.ts'
import { IGNORE_FILE } from '../disk/ignore-file.ts'
import type { PollPhase } from '../disk/poll-phase.ts'
import { isSameState } from '../disk/signature.ts'
import type { FileStore } from '../files/file-store.ts'
import { Signal } from '../ground/signal.ts'
import type { Signature } from '../ground/skill.ts'
import { Catalog, type CatalogChange, type IndexedSkill, isSameOnDisk, isSameToCallers } from './catalog.ts'
import { SLICE_MS } from '../ground/limits.ts'
import { indexSkill } from './index-skill.ts'
import { orderMainFiles } from './main-files.ts'
import type { Roots } from './roots.ts'
import type { SkillFolder } from './scan-root.ts'

export interface LiveCatalogOptions {
  readonly roots: Roots
  readonly store: FileStore
  readonly phase: PollPhase
}

export interface CatalogHints {
  readonly everything: boolean
  readonly byRoot: ReadonlyMap<string, ReadonlySet<string>>
}

/** How often a question is asked anew when the disk changes under it. */
const MAX_ATTEMPTS = 8

/** Rest after a comparison of all labels, as a multiple of what it took, and the longest, in milliseconds. */
const LABEL_REST_FACTOR = 4
const MAX_LABEL_REST_MS = 250

/**
 * The catalog, compared with the disk: one skill for whoever asks for it, some or all of them for the refresher. What
 * differs is read again and put in place in one step.
 */
export class LiveCatalog {
  /** Emits each change once it is in place. */
  readonly changed = new Signal<CatalogChange>()
  /** Emits the names of skills that may be different in any of their files, undefined for all skills. */
  readonly touched = new Signal<Iterable<string> | undefined>()
  /** Compares every skill, and reads again what differs. */
  readonly verifyAll = coalesce(() => this.verify(this.#catalog.names))
  /** Compares every skill as far as its name in the frontmatter goes. Runs are spaced: a label that nobody has takes a share of a core at most. */
  readonly #verifyLabels = coalesce(() => this.#verifyLabelsOnce())
  readonly #roots: Roots
  readonly #store: FileStore
  readonly #phase: PollPhase
  #catalog = new Catalog()
  #sequence = 0
  #changeCount = 0
  #labelsRestUntil = 0

  constructor ({ roots, store, phase }: LiveCatalogOptions) {
    this.#roots = roots
    this.#store = store
    this.#phase = phase
    roots.changed.subscribe(({ names }) => { this.#takeFolders(names) })
  }

  /** The last state, without a comparison with the disk. */
  get last (): Catalog {
    return this.#catalog
  }

  /** Compares what may have changed: everything, or names by the path of their root, '' for any root; no name is the root itself. */
  async refresh ({ everything, byRoot }: CatalogHints): Promise<void> {
    if (everything) {
      await this.#roots.sync(undefined, true)
      await this.verifyAll()
      this.touched.emit(undefined)
      return
    }
    for (const [root, names] of byRoot) {
      const index = this.#roots.indexOf(root)
      // A name that is no skill may be a link that leads to one now.
      const withLinks = names.size === 0 || [...names].some((name) => !this.#catalog.folders.has(name))
      if (index !== -1) await this.#roots.sync(index + 1, withLinks)
      await this.verify(names)
      this.touched.emit(names)
    }
  }

  /**
   * The skill of this name as it is on the disk now; undefined when there is none.
   * @throws {SkillError} `folderError`'s sentences without a root
   */
  find (name: string): Awaitable<IndexedSkill | undefined> {
    const known = this.#catalog.get(name)
    // A root before the skill's own may have got a folder of that name.
    if (known === undefined || known.folder.root > 0) return this.#search(name)
    return whenReady(this.#holds(known), (isSame) => isSame ? known : this.#search(name, known))
  }

  /** @param outdated what the disk no longer has: it is not compared once more */
  async #search (name: string, outdated?: IndexedSkill): Promise<IndexedSkill | undefined> {
    // Each attempt ends with the skill, or with a root scanned again; a name that keeps coming and going is not there.
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      // The stats from before the skill went away say nothing about where it went.
      if (attempt > 0) this.#phase.forget()
      // A root before the skill's own may have got a folder of that name; an unknown name may be in any root.
      const root = this.#catalog.folders.get(name)?.root
      const hasRules = this.#catalog.folders.get(name)?.rootRules !== undefined
      await this.#roots.sync(root !== undefined && hasRules ? root + 1 : root, root === undefined)
      const folder = this.#catalog.folders.get(name)
      // Another question's scan moved the skill to a root that was not compared here.
      if (root !== undefined && (folder === undefined || folder.root > root)) continue
      if (folder === undefined) {
        this.#roots.requireOne()
        return undefined
      }
      const known = this.#catalog.get(name)
      if (known !== undefined && known !== outdated && await this.#holds(known)) return known
      const loaded = await this.#load(folder)
      if (loaded === undefined) await this.#roots.rescan(folder.root)
      // What may not be read may be the root's doing.
      else if (loaded.refused !== undefined) await this.#roots.sync(folder.root + 1)
      if (loaded !== undefined && this.#catalog.folders.get(name) === folder) {
        this.#commit([loaded])
        return loaded
      }
    }
    return undefined
  }

  /**
   * The skill with this frontmatter name, else the skill of this folder name. "Not found" needs a comparison of all
   * skills, since any of them may have taken the name a moment ago; if one changed meanwhile, all are compared again.
   */
  async findByDisplayName (displayName: string): Promise<IndexedSkill | undefined> {
    const folder = await this.find(displayName)
    if (folder?.metadata.name === displayName) return folder
    const known = await this.#findKnown(displayName)
    if (known !== undefined) return known
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const changeCount = this.#changeCount
      await this.#roots.sync(undefined, true)
      await this.#verifyLabels()
      const found = await this.#findKnown(displayName)
      if (found !== undefined) return found
      if (changeCount === this.#changeCount) break
    }
    return folder
  }

  /**
   * Reads again which of these skills differ from the disk, in slices; each slice is one step of the catalog.
   * @param holds tells whether a skill does not differ
   */
  async verify (names: Iterable<string>, holds = (skill: IndexedSkill): Awaitable<boolean> => this.#holds(skill)): Promise<void> {
    const yieldIfNeeded = createSlicer()
    let loaded: IndexedSkill[] = []
    const gone = new Set<number>()
    for (const name of names) {
      const folder = this.#catalog.folders.get(name)
      if (folder === undefined) continue
      const known = this.#catalog.get(name)
      if (known === undefined || !await holds(known)) {
        const skill = await this.#load(folder)
        if (skill === undefined) gone.add(folder.root)
        else loaded.push(skill)
      }
      const pause = yieldIfNeeded()
      if (pause !== undefined) {
        this.#commit(loaded)
        loaded = []
        await pause
      }
    }
    this.#commit(loaded)
    for (const root of gone) await this.#roots.rescan(root)
  }

  /**
   * Whether a skill that `find` gave is what its name means still, untouched. Never throws.
   * @param root the root's signature at that time: nothing else shows a root that went away and came back
   */
  async isStill ({ name, folder, folderSignature }: IndexedSkill, root: Signature | undefined): Promise<boolean> {
    this.#phase.forget()
    try {
      await this.#roots.sync(folder.root + 1)
      const now = await this.find(name)
      const rootNow = this.#roots.signatureOf(folder)
      return now?.folder === folder && isSameState(now.folderSignature, folderSignature) &&
        root !== undefined && rootNow !== undefined && isSameState(root, rootNow)
    } catch {
      return false
    }
  }

  async #verifyLabelsOnce (): Promise<void> {
    if (performance.now() < this.#labelsRestUntil) await setTimeout(this.#labelsRestUntil - performance.now())
    const start = performance.now()
    await this.verify(this.#catalog.names, (skill) => this.#holdsLabel(skill))
    const took = performance.now() - start
    if (took > SLICE_MS) this.#labelsRestUntil = start + took + Math.min(LABEL_REST_FACTOR * took, MAX_LABEL_REST_MS)
  }

  async #findKnown (displayName: string): Promise<IndexedSkill | undefined> {
    const name = this.#catalog.folderOfDisplayName(displayName)
    const skill = name === undefined ? undefined : await this.find(name)
    return skill?.metadata.name === displayName ? skill : undefined
  }

  #takeFolders (names: readonly string[]): void {
    const before = this.#catalog
    this.#changeCount++
    const { folders, shadowing } = this.#roots.merge(before, names)
    this.#catalog = before.withFolders(folders, shadowing, names)
    this.#announce([], [], names.filter((name) => before.folders.has(name) && !folders.has(name)))
  }

  /** Whether the disk has what the index says of a skill. */
  #holds (skill: IndexedSkill): Awaitable<boolean> {
    const { folder, folderSignature, mainFile } = skill
    if (!skill.isTrustworthy || skill.refused !== undefined || !this.#catalog.isInPlace(skill)) return false
    // A main file that was passed over may be of use now: a link's target made.
    if (mainFile?.name !== orderMainFiles(skill.mainFiles, 'SKILL.md')[0]) return false
    const disk = this.#roots.diskOf(folder)
    return whenReady(this.#phase.stat(disk, folder.path), (now) => {
      if (now === undefined || !isSameState(now, folderSignature)) return false
      if (skill.filter !== undefined) return this.#filteredHolds(disk, skill)
      return folder.linked ? this.#linkHolds(disk, skill) : this.#mainFileHolds(disk, skill)
    })
  }

  /** An ignore file may be written without a change to its folder. */
  async #filteredHolds (disk: Disk, skill: IndexedSkill): Promise<boolean> {
    const { folder, ignoreFile } = skill
    if (folder.rootRules !== undefined && !await this.#roots.rulesHold(folder)) return false
    if (ignoreFile !== undefined) {
      const now = await this.#phase.stat(disk, `${folder.path}/${IGNORE_FILE}`)
      if (now === undefined || !isSameState(now, ignoreFile)) return false
    }
    return await (folder.linked ? this.#linkHolds(disk, skill) : this.#mainFileHolds(disk, skill))
  }

  async #linkHolds (disk: Disk, skill: IndexedSkill): Promise<boolean> {
    const { path, realPath } = skill.folder
    return await realpathOrNothing(disk, path) === realPath && await this.#mainFileHolds(disk, skill)
  }

  #mainFileHolds (disk: Disk, { metadata, mainFile }: IndexedSkill): Awaitable<boolean> {
    if (mainFile === undefined) return true
    return whenReady(this.#phase.stat(disk, metadata.path), (now) => now !== undefined && isSameState(now, mainFile.signature))
  }

  /** One stat instead of two where no other file can be preferred to the main file. */
  #holdsLabel (skill: IndexedSkill): Awaitable<boolean> {
    const isPlain = skill.mainFile?.name === 'SKILL.md' && !skill.folder.linked && skill.filter === undefined
    return isPlain && skill.isTrustworthy && this.#catalog.isInPlace(skill) ? this.#mainFileHolds(this.#roots.diskOf(skill.folder), skill) : this.#holds(skill)
  }

  async #load (folder: SkillFolder): Promise<IndexedSkill | undefined> {
    return await indexSkill(folder, {
      disk: this.#roots.diskOf(folder),
      store: this.#store,
      sequence: ++this.#sequence,
      shadowing: this.#catalog.shadowing.has(folder.name)
    })
  }

  #commit (loaded: readonly IndexedSkill[]): void {
    const before = this.#catalog
    const added: string[] = []
    const changed: string[] = []
    const accepted = loaded.filter((skill) => {
      const { name } = skill
      const known = before.get(name)
      if (before.folders.get(name) !== skill.folder || (known?.sequence ?? 0) >= skill.sequence) return false
      // A disk that fails, or a file that never holds, says nothing about the skill: what was known before stands.
      if (known !== undefined && (skill.refused?.refusal === 'io_error' || skill.refused?.refusal === 'changed')) return false
      if (known === undefined || !isSameOnDisk(known, skill)) this.#changeCount++
      if (known === undefined) added.push(name)
      else if (!isSameToCallers(known, skill)) changed.push(name)
      return true
    })
    if (accepted.length === 0) return
    this.#catalog = before.withSkills(accepted, added.length + changed.length > 0)
    this.#announce(added, changed, [])
  }

  #announce (added: readonly string[], changed: readonly string[], removed: readonly string[]): void {
    if (added.length + changed.length + removed.length === 0) return
    this.changed.emit({ generation: this.#catalog.generation, added, changed, removed })
  }
}

async function realpathOrNothing (disk: Disk, path: string): Promise<string | undefined> {
  try {
    return await disk.realpath(path)
  } catch {
    return undefined
  }
}
