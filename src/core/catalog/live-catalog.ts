import { coalesce, createSlicer } from '../ground/async.ts'
import type { PollPhase } from '../disk/poll-phase.ts'
import { isSameState } from '../disk/signature.ts'
import type { FileStore } from '../files/file-store.ts'
import { MAX_ATTEMPTS } from '../ground/limits.ts'
import { Signal } from '../ground/signal.ts'
import type { Signature } from '../ground/skill.ts'
import { type Admission, AdmittedFolders, type CheckOutcome } from './admission.ts'
import { Catalog, type CatalogChange, type IndexedSkill } from './catalog.ts'
import { compareLoaded, folderHolds, folderHoldsAtOnce, mainFileHolds, mayHold, rulesHold } from './index-entry.ts'
import { indexSkill } from './index-skill.ts'
import type { Roots, RootStatus } from '../roots/roots.ts'
import { withRests } from './rests.ts'
import type { SkillFolder } from '../roots/scan-root.ts'
import type { RefreshHints } from '../watch/watcher.ts'

export interface LiveCatalogOptions {
  readonly roots: Roots
  readonly store: FileStore
  readonly phase: PollPhase
  /** Decides which folders are served. Default: all. */
  readonly admission?: Admission | undefined
}

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
  readonly verifyAll = coalesce(() => this.verify(this.#admitted === undefined ? this.#catalog.names : this.#roots.allNames()))
  /** Compares the roots, and every skill as far as its name in the frontmatter goes. Runs are spaced, so that requests for unknown names cannot occupy the process. */
  readonly verifyDisplayNames = coalesce(withRests(async () => {
    await this.#roots.sync(undefined, true)
    await this.verify(this.#catalog.names, (skill) => this.#holdsDisplayName(skill))
  }))

  /** Checks folders that came since the last call, and all of them after a change of the policy. */
  readonly checkNew = coalesce(() => this.#readmitted.then(() => this.verify(this.#admitted?.unchecked ?? [])))
  readonly #roots: Roots
  readonly #store: FileStore
  readonly #phase: PollPhase
  readonly #admitted: AdmittedFolders | undefined
  #catalog = new Catalog()
  #sequence = 0
  #changeCount = 0
  /** The checks after the last change of the policy. */
  #readmitted: Promise<void> = Promise.resolve()

  constructor ({ roots, store, phase, admission }: LiveCatalogOptions) {
    this.#roots = roots
    this.#store = store
    this.#phase = phase
    this.#admitted = admission && new AdmittedFolders(admission)
    roots.changed.subscribe(({ names }) => {
      this.#takeFolders(names)
      this.#admitted?.checkLater(names)
    })
  }

  /** The last state, without a comparison with the disk. */
  get last (): Catalog { return this.#catalog }

  /** The roots, each with the number of its folders that are served. */
  get rootStatus (): readonly RootStatus[] { return this.#roots.status(this.#admitted) }

  async refresh ({ everything, byRoot }: RefreshHints): Promise<void> {
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
  async find (name: string): Promise<IndexedSkill | undefined> {
    const known = this.#catalog.get(name)
    // A root before the skill's own may have got a folder of that name.
    if (known === undefined || !this.#roots.listingHolds(known.folder) || !await this.#roots.hasNoneBefore(name, known.folder.root)) return await this.#search(name)
    return await this.#holds(known) ? known : await this.#search(name, known)
  }

  /** The same for a skill of the first root, if the disk says at once that the index has it; else undefined. */
  findAtOnce (name: string): IndexedSkill | undefined {
    const known = this.#catalog.get(name)
    if (known === undefined || known.folder.root > 0 || !this.#roots.listingHolds(known.folder) || !mayHold(this.#catalog, known)) return undefined
    return folderHoldsAtOnce(this.#roots.diskOf(known.folder), this.#phase, known) ? known : undefined
  }

  /** @param outdated what the disk no longer has: it is not compared once more */
  async #search (name: string, outdated?: IndexedSkill): Promise<IndexedSkill | undefined> {
    // Each attempt ends with the skill, or with a root scanned again; a name that keeps coming and going is not there.
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      // The stats from before the skill went away say nothing about where it went.
      if (attempt > 0) this.#phase.forget()
      // A root before the skill's own may have got a folder of that name; an unknown name may be in any root.
      const before = this.#catalog.folders.get(name)
      const root = before?.root
      const needsOwnRoot = before !== undefined && (before.rootRules !== undefined || this.#roots.isListed(before))
      await this.#roots.sync(root !== undefined && needsOwnRoot ? root + 1 : root, root === undefined)
      const folder = this.#catalog.folders.get(name)
      // Another question's scan moved the skill to a root that was not compared here.
      if (root !== undefined && (folder === undefined || folder.root > root)) continue
      if (folder === undefined) {
        const admitted = await this.#loadWaiting(name)
        if (admitted !== undefined) {
          this.#commit([admitted])
          continue
        }
        this.#roots.requireOne()
        return undefined
      }
      const known = this.#catalog.get(name)
      if (known !== undefined && known !== outdated && await this.#holds(known)) return known
      const loaded = await this.#load(folder)
      // What may not be read may be the root's doing.
      if (loaded?.refused !== undefined) await this.#roots.sync(folder.root + 1)
      if (this.#catalog.folders.get(name) !== folder) continue
      if (loaded !== undefined) {
        this.#commit([loaded])
        return loaded
      }
      await this.#roots.rescan(folder.root)
    }
    return undefined
  }

  /**
   * The skill with this frontmatter name, else the skill of this folder name. "Not found" needs a comparison of all
   * skills, since any of them may have taken the name a moment ago. If one changed meanwhile, all are compared again.
   */
  async findByDisplayName (displayName: string): Promise<IndexedSkill | undefined> {
    const folder = await this.find(displayName)
    if (folder?.metadata.name === displayName) return folder
    for (let attempt = 0, changeCount = -1; attempt <= MAX_ATTEMPTS; attempt++) {
      const name = this.#catalog.folderOfDisplayName(displayName)
      const skill = name === undefined ? undefined : await this.find(name)
      if (skill?.metadata.name === displayName) return skill
      if (changeCount === this.#changeCount) break
      changeCount = this.#changeCount
      await this.verifyDisplayNames()
    }
    return folder
  }

  /**
   * Reads again which of these skills differ from the disk, in slices; each slice is one step of the catalog.
   * @param holds tells whether a skill does not differ
   */
  async verify (names: Iterable<string>, holds = (skill: IndexedSkill): Promise<boolean> => this.#holdsAdmitted(skill)): Promise<void> {
    const yieldIfNeeded = createSlicer()
    let loaded: IndexedSkill[] = []
    const gone = new Set<number>()
    for (const name of names) {
      const compare = () => this.#readChanged(name, holds, gone)
      const skill = await (this.#admitted === undefined ? compare() : this.#admitted.withCheck(name, compare))
      if (skill !== undefined) loaded.push(skill)
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

  /** @param gone gets the root whose listing has a folder that is not there */
  async #readChanged (name: string, holds: (skill: IndexedSkill) => Promise<boolean>, gone: Set<number>): Promise<IndexedSkill | undefined> {
    const admitted = this.#admitted && await this.#loadWaiting(name)
    if (admitted !== undefined) return admitted
    const known = this.#catalog.get(name)
    if (known !== undefined && await holds(known)) return undefined
    // When the policy refuses it, the next root's folder of that name takes its place.
    const now = this.#catalog.folders.get(name)
    const skill = now && await this.#load(now)
    if (skill === undefined && now !== undefined && this.#catalog.folders.get(name) === now) gone.add(now.root)
    return skill
  }

  /** Whether a skill that `find` gave is what its name means still, untouched. `root` is the root's signature then: it may have gone and come back. */
  async isStill ({ name, folder, folderSignature }: IndexedSkill, root: Signature | undefined): Promise<boolean> {
    this.#phase.forget()
    try {
      await this.#roots.sync(folder.root + 1)
      const [now, rootNow] = [await this.find(name), this.#roots.signatureOf(folder)]
      return now?.folder === folder && isSameState(now.folderSignature, folderSignature) && root !== undefined && rootNow !== undefined && isSameState(root, rootNow)
    } catch {
      return false
    }
  }

  /** Whether what a skill hides is as its index entry says, on the disk as it is now. */
  async filterHolds (skill: IndexedSkill): Promise<boolean> {
    if (skill.filter === undefined) return true
    this.#phase.forget()
    return await rulesHold(this.#roots.diskOf(skill.folder), this.#phase, skill, () => this.#roots.rulesHold(skill.folder))
  }

  #takeFolders (names: readonly string[]): void {
    const before = this.#catalog
    this.#changeCount++
    const { folders, shadowing } = this.#roots.merge(before, names, this.#admitted)
    this.#catalog = before.withFolders(folders, shadowing, names)
    this.#announce({ removed: names.filter((name) => before.folders.has(name) && !folders.has(name)) })
  }

  /** Whether the disk has what the index says of a skill. */
  async #holds (skill: IndexedSkill): Promise<boolean> {
    return mayHold(this.#catalog, skill) && await folderHolds(this.#roots.diskOf(skill.folder), this.#phase, skill, () => this.#roots.rulesHold(skill.folder))
  }

  /** One stat instead of two where no other file can be preferred to the main file. */
  async #holdsDisplayName (skill: IndexedSkill): Promise<boolean> {
    const isPlain = skill.mainFile?.name === 'SKILL.md' && !skill.folder.linked && skill.filter === undefined
    return await (isPlain && skill.isTrustworthy && this.#catalog.isInPlace(skill) ? mainFileHolds(this.#roots.diskOf(skill.folder), this.#phase, skill) : this.#holds(skill))
  }

  /** Undefined when the folder is no longer the one that the root listed, or is not served. */
  async #load (folder: SkillFolder): Promise<IndexedSkill | undefined> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const skill = await indexSkill(folder, { disk: this.#roots.diskOf(folder), store: this.#store, sequence: ++this.#sequence, shadowing: this.#catalog.shadowing.get(folder.name), hiddenNames: this.#admitted?.hiddenNames })
      if (skill === undefined) return undefined
      const outcome = await this.#check(skill)
      if (outcome !== 'changed') return outcome === 'served' ? skill : undefined
    }
    this.refuse(folder)
    return undefined
  }

  /** A folder that is guarded is absent from now on, until a check admits it. */
  refuse (folder: SkillFolder): void {
    if (this.#admitted?.delete(folder) !== true) return
    // The next root's folder of that name is not read yet: until then there is no entry.
    this.#catalog = this.#catalog.without(folder)
    this.#takeFolders([folder.name])
  }

  /** The policy is another one: all skills are checked before the next list. */
  readmit (): void {
    this.#admitted?.policyChanged()
    this.#takeFolders(this.#roots.allNames())
    this.#readmitted = this.verifyAll().catch(() => { this.#admitted?.checkLater(this.#roots.allNames()) }).then(() => { this.touched.emit(undefined) })
  }

  async #check (skill: IndexedSkill): Promise<CheckOutcome> {
    const outcome = await this.#admitted?.check(skill)
    if (outcome === 'refused') this.refuse(skill.folder)
    return outcome ?? 'served'
  }

  /** Checks folders of a name that are not served, and come before the one that is; undefined when there is none, or all are refused. */
  async #loadWaiting (name: string): Promise<IndexedSkill | undefined> {
    for (const folder of this.#admitted === undefined ? [] : this.#roots.candidates(name)) {
      if (this.#admitted?.has(folder) === true) return undefined
      const skill = await this.#load(folder)
      if (skill !== undefined) return skill
    }
    return undefined
  }

  async #holdsAdmitted (skill: IndexedSkill): Promise<boolean> {
    return await this.#holds(skill) && (this.#admitted === undefined || await this.#check(skill) === 'served')
  }

  #commit (loaded: readonly IndexedSkill[]): void {
    // Those that were admitted since: together, as each step copies the catalog.
    const admitted = loaded.filter(({ folder }) => this.#admitted?.has(folder) === true && this.#catalog.folders.get(folder.name) !== folder)
    if (admitted.length > 0) this.#takeFolders(admitted.map(({ name }) => name))
    const before = this.#catalog
    const { accepted, added, changed, count } = compareLoaded(before, loaded)
    if (accepted.length === 0) return
    this.#changeCount += count
    this.#catalog = before.withSkills(accepted, added.length + changed.length > 0)
    this.#announce({ added, changed })
  }

  #announce ({ added = [], changed = [], removed = [] }: Partial<CatalogChange>): void {
    if (added.length + changed.length + removed.length > 0) this.changed.emit({ generation: this.#catalog.generation, added, changed, removed })
  }
}
