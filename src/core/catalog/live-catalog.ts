import { coalesce, createSlicer } from '../shared/async.ts'
import { realpathOrNothing } from '../disk/disk.ts'
import type { PollPhase } from '../disk/poll-phase.ts'
import { isSameState } from '../disk/signature.ts'
import type { FileStore } from '../files/file-store.ts'
import { MAX_ATTEMPTS } from '../shared/limits.ts'
import { Signal } from '../shared/signal.ts'
import type { Signature } from '../shared/skill.ts'
import { type Admission, AdmittedFolders, type CheckOutcome } from './admission.ts'
import { Catalog, type CatalogChange, type IndexedSkill } from './catalog.ts'
import { compareLoaded, folderHolds, folderHoldsAtOnce, mainFileHolds, mayHold, rulesHold } from './index-entry.ts'
import { indexSkill } from './index-skill.ts'
import type { Root } from '../roots/root.ts'
import type { RootStatus } from '../roots/root-reports.ts'
import { withRests } from './rests.ts'
import type { SkillFolder } from '../roots/scan-root.ts'
import type { RefreshHints } from '../watch/watcher.ts'

interface LiveCatalogOptions {
  readonly root: Root
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
  readonly verifyAll = coalesce(() => this.verify(this.#admitted === undefined ? this.#catalog.names : this.#root.folders.keys()))
  /** Reads the skills that have been listed, and not yet read. */
  readonly readNew = coalesce(() => this.verify(this.#catalog.unread))
  /** Compares the root, and every skill as far as its name in the frontmatter goes. Runs are spaced, so that requests for unknown names cannot occupy the process. */
  readonly verifyDisplayNames = coalesce(withRests(async () => {
    await this.#root.sync(true)
    await this.verify(this.#catalog.names, (skill) => this.#holdsDisplayName(skill))
  }))

  /** Checks folders that came since the last call, and all of them after a change of the policy. */
  readonly checkNew = coalesce(() => this.#readmitted.then(() => this.verify(this.#admitted?.unchecked ?? [])))
  readonly #root: Root
  readonly #store: FileStore
  readonly #phase: PollPhase
  readonly #admitted: AdmittedFolders | undefined
  #catalog = new Catalog()
  #sequence = 0
  #changeCount = 0
  /** The checks after the last change of the policy. */
  #readmitted: Promise<void> = Promise.resolve()

  constructor ({ root, store, phase, admission }: LiveCatalogOptions) {
    this.#root = root
    this.#store = store
    this.#phase = phase
    this.#admitted = admission && new AdmittedFolders(admission)
    root.changed.subscribe(({ names }) => {
      this.#takeFolders(names)
      this.#admitted?.checkLater(names)
    })
  }

  /** The last state, without a comparison with the disk. */
  get last (): Catalog { return this.#catalog }

  /** Goes up with each difference that was found on the disk, visible to callers or not. */
  get changeCount (): number { return this.#changeCount }

  /** The root, with the number of its folders that are served. */
  get rootStatus (): RootStatus { return this.#root.status(this.#admitted) }

  async refresh ({ everything, names }: RefreshHints): Promise<void> {
    if (everything) {
      await this.#root.reconcile()
      await this.verifyAll()
      this.touched.emit(undefined)
      return
    }
    // The name may be a link that leads to a skill by now.
    await this.#root.sync(names.size === 0 || [...names].some((name) => !this.#catalog.folders.has(name)))
    await this.verify(names)
    this.touched.emit(names)
  }

  /**
   * The skill of this name as it is on the disk now; undefined when there is none.
   * @throws {SkillError} `folderError`'s sentences without the root
   */
  async find (name: string): Promise<IndexedSkill | undefined> {
    const known = this.#catalog.get(name)
    if (known === undefined || !this.#root.listingHolds()) return await this.#search(name)
    return await this.#holds(known) ? known : await this.#search(name, known)
  }

  /** The same, if the disk says at once that the index has it; else undefined. */
  findAtOnce (name: string): IndexedSkill | undefined {
    const known = this.#catalog.get(name)
    if (known === undefined || !this.#root.listingHolds() || !mayHold(this.#catalog, known)) return undefined
    return folderHoldsAtOnce(this.#root.disk, this.#phase, known) ? known : undefined
  }

  /** @param outdated what the disk no longer has: it is not compared once more */
  async #search (name: string, outdated?: IndexedSkill): Promise<IndexedSkill | undefined> {
    // Each attempt ends with the skill, or with the root scanned again; a name that keeps coming and going is not there.
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      // Remembered stats are from before the skill went away.
      if (attempt > 0) this.#phase.forget()
      const before = this.#catalog.folders.get(name)
      if (before === undefined) {
        if (!await this.#root.holdsFor(name)) await this.#root.rescan()
      } else if (before.rootRules !== undefined || this.#root.listed !== undefined) await this.#root.sync()
      const folder = this.#catalog.folders.get(name)
      if (folder === undefined) {
        const admitted = await this.#loadWaiting(name)
        if (admitted !== undefined) {
          this.#commit([admitted])
          continue
        }
        this.#root.requireFolder()
        return undefined
      }
      const known = this.#catalog.get(name)
      if (known !== undefined && known !== outdated && await this.#holds(known)) return known
      const loaded = await this.#load(folder)
      // The root itself may be the reason why the skill cannot be read.
      if (loaded?.refused !== undefined) await this.#root.sync()
      if (this.#catalog.folders.get(name) !== folder) continue
      if (loaded !== undefined) {
        this.#commit([loaded])
        return loaded
      }
      await this.#root.rescan()
    }
    return undefined
  }

  /**
   * Reads again which of these skills differ from the disk, in slices; each slice is one step of the catalog.
   * @param holds tells whether a skill does not differ
   */
  async verify (names: Iterable<string>, holds = (skill: IndexedSkill): Promise<boolean> => this.#holdsAdmitted(skill)): Promise<void> {
    const yieldIfNeeded = createSlicer()
    let loaded: IndexedSkill[] = []
    let isGone = false
    for (const name of names) {
      const compare = () => this.#readChanged(name, holds)
      const skill = await (this.#admitted === undefined ? compare() : this.#admitted.withCheck(name, compare))
      if (skill === 'gone') isGone = true
      else if (skill !== undefined) loaded.push(skill)
      const pause = yieldIfNeeded()
      if (pause !== undefined) {
        this.#commit(loaded)
        loaded = []
        await pause
      }
    }
    this.#commit(loaded)
    if (isGone) await this.#root.rescan()
  }

  /** Undefined for a skill that holds, `gone` for one that the root has listed and that is not there. */
  async #readChanged (name: string, holds: (skill: IndexedSkill) => Promise<boolean>): Promise<IndexedSkill | 'gone' | undefined> {
    const admitted = this.#admitted && await this.#loadWaiting(name)
    if (admitted !== undefined) return admitted
    const known = this.#catalog.get(name)
    if (known !== undefined && await holds(known)) return undefined
    const folder = this.#catalog.folders.get(name)
    const skill = folder && await this.#load(folder)
    // A skill that the policy refuses leaves the catalog.
    return skill ?? (folder !== undefined && this.#catalog.folders.get(name) === folder ? 'gone' : undefined)
  }

  /** Whether a skill that `find` gave is what its name means still, untouched. `root` is the root's signature then: it may have gone and come back. */
  async isStill ({ name, folder, folderSignature }: IndexedSkill, root: Signature | undefined): Promise<boolean> {
    this.#phase.forget()
    try {
      await this.confirmPlace(folder)
      await this.#root.sync()
      const [now, rootNow] = [await this.find(name), this.#root.signature]
      return now?.folder === folder && isSameState(now.folderSignature, folderSignature) && root !== undefined && rootNow !== undefined && isSameState(root, rootNow)
    } catch {
      return false
    }
  }

  /** Lists the root again if the skill is elsewhere. A link in place of the root, or of a folder above it, changes no signature in the root. */
  async confirmPlace ({ path, realPath }: SkillFolder): Promise<void> {
    if (await realpathOrNothing(this.#root.disk, path) !== realPath) await this.#root.rescan()
  }

  /** Whether what a skill hides is as its index entry says, on the disk as it is now. */
  async filterHolds (skill: IndexedSkill): Promise<boolean> {
    if (skill.filter === undefined) return true
    this.#phase.forget()
    return await rulesHold(this.#root.disk, this.#phase, skill, () => this.#root.rulesHold(skill.folder))
  }

  #takeFolders (names: readonly string[]): void {
    const before = this.#catalog
    this.#changeCount++
    const folders = this.#servedFolders(names)
    this.#catalog = before.withFolders(folders, names)
    this.#announce({ removed: names.filter((name) => before.folders.has(name) && !folders.has(name)) })
  }

  /** @param names of the folders that may be others than before, or served now, or no more */
  #servedFolders (names: readonly string[]): ReadonlyMap<string, SkillFolder> {
    const { folders } = this.#root
    if (this.#admitted === undefined) return folders
    const served = new Map(this.#catalog.folders)
    for (const name of names) {
      const folder = folders.get(name)
      if (folder !== undefined && this.#admitted.has(folder)) served.set(name, folder)
      else served.delete(name)
    }
    return served
  }

  /** Whether the disk has what the index says of a skill. */
  async #holds (skill: IndexedSkill): Promise<boolean> {
    return mayHold(this.#catalog, skill) && await folderHolds(this.#root.disk, this.#phase, skill, () => this.#root.rulesHold(skill.folder))
  }

  /** One stat instead of two where no other file can be preferred to the main file. */
  async #holdsDisplayName (skill: IndexedSkill): Promise<boolean> {
    const isPlain = skill.mainFile?.name === 'SKILL.md' && !skill.folder.linked && skill.filter === undefined
    return await (isPlain && skill.isTrustworthy && this.#catalog.isInPlace(skill) ? mainFileHolds(this.#root.disk, this.#phase, skill) : this.#holds(skill))
  }

  /** Undefined when the folder is no longer the one that the root listed, or is not served. */
  async #load (folder: SkillFolder): Promise<IndexedSkill | undefined> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const skill = await indexSkill(folder, { disk: this.#root.disk, store: this.#store, sequence: ++this.#sequence, hiddenNames: this.#admitted?.hiddenNames })
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
    this.#takeFolders([folder.name])
  }

  /** The policy is another one: all skills are checked before the next list. */
  readmit (): void {
    this.#admitted?.policyChanged()
    this.#takeFolders([...this.#root.folders.keys()])
    this.#readmitted = this.verifyAll().catch(() => { this.#admitted?.checkLater(this.#root.folders.keys()) }).then(() => { this.touched.emit(undefined) })
  }

  async #check (skill: IndexedSkill): Promise<CheckOutcome> {
    const outcome = await this.#admitted?.check(skill)
    if (outcome === 'refused') this.refuse(skill.folder)
    return outcome ?? 'served'
  }

  /** Checks the folder of a name that is not served yet; undefined when there is none, or it is refused. */
  async #loadWaiting (name: string): Promise<IndexedSkill | undefined> {
    const folder = this.#root.folders.get(name)
    // One that was admitted a moment ago is put in place together with those after it.
    return folder === undefined || this.#catalog.folders.get(name) === folder ? undefined : await this.#load(folder)
  }

  async #holdsAdmitted (skill: IndexedSkill): Promise<boolean> {
    return await this.#holds(skill) && (this.#admitted === undefined || await this.#check(skill) === 'served')
  }

  #commit (loaded: readonly IndexedSkill[]): void {
    // Skills that were admitted meanwhile are put in place together, since each step copies the catalog.
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
