import { hash } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { Catalog, IndexChange } from './catalog.ts'
import { PresentState } from './revisions/state.ts'
import type { Root } from './roots/root.ts'
import { yieldIfNeeded } from './shared/async.ts'
import { SkillError } from './shared/errors.ts'
import { type CoreLog, SILENT } from './shared/log.ts'

/** Number of changes that are kept, including those of skills that a view does not see. */
const MAX_JOURNAL = 8_192

/** Pause before a skill that was being written, or whose disk is slow, is compared again, in milliseconds. */
const RETRY_MS = 200

export interface Content {
  /** Revision of the manifest; undefined if the files cannot be listed, or have not been read yet. */
  readonly revision: string | undefined
  /** Digest of the main file. It distinguishes states without a revision. */
  readonly mainFile: string | undefined
  /** Summand of the skill in the catalog revision. With a sum, a change of one skill costs two hashes. */
  readonly part: bigint
}

/** Content of unread skills: UNREAD if present at the start, NEW if added later. Neither equals any other content. */
const UNREAD: Content = { revision: undefined, mainFile: undefined, part: 0n }
export const NEW: Content = { ...UNREAD }

/** The content of a skill in one root. */
export interface Claim {
  readonly root: string
  readonly content: Content
}

/** A change of the skills with one name: those of all roots, in their order, before and after. */
export interface LedgerChange {
  readonly name: string
  readonly before: readonly Claim[]
  readonly now: readonly Claim[]
  /** Version of the ledger after it. */
  readonly version: number
}

/**
 * Keeps the revisions of all skills of a catalog, each computed once for all views. After `start` it follows the
 * catalog: it reads the skills of each root in the background after the root's first index, and then those that change.
 * It emits `filled` when all skills that a root had at the beginning have been read.
 */
export class Ledger extends EventEmitter<{ change: [change: LedgerChange], filled: [] }> {
  readonly catalog: Catalog
  readonly log: CoreLog
  /** The contents that roots have under each name, in the order of the roots. */
  readonly claims = new Map<string, readonly Claim[]>()
  /** The latest changes, the oldest first. */
  readonly journal: LedgerChange[] = []
  /** Number of subscribers to events with revisions. While there are any, computed revisions stay readable. */
  readers = 0
  /** Incremented by each new content of a name. */
  version = 0
  /** Roots whose skills are being read, or were. */
  readonly #roots = new Map<Root, RootLedger>()
  #followed: readonly Root[] = []
  #isStarted = false

  constructor (catalog: Catalog, log: CoreLog = SILENT) {
    super()
    this.setMaxListeners(0)
    this.catalog = catalog
    this.log = log
  }

  /** Begins to read and follow skills. Before that, the ledger is empty. */
  start (): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#followed = this.catalog.roots
    this.catalog.on('changed', this.#onChanged).on('refreshed', this.#onRefreshed)
    for (const root of this.#followed) if (root.isIndexed) this.#open(root, false)
  }

  close (): void {
    this.#isStarted = true
    this.catalog.off('changed', this.#onChanged).off('refreshed', this.#onRefreshed)
    for (const root of this.#roots.values()) root.close()
    this.removeAllListeners()
  }

  /** Whether all skills of these roots have been read once. */
  isFilled (isGranted: (root: string) => boolean): boolean {
    return this.#isStarted &&
      this.#followed.every((root) => !isGranted(root.name) || this.#roots.get(root)?.isFilled === true)
  }

  /** Whether one of these skills has changed and was not read since. */
  isReading (isGranted: (root: string, name: string) => boolean): boolean {
    return [...this.#roots].some(([{ name: root }, ledger]) => ledger.hasUnread((name) => isGranted(root, name)))
  }

  readonly #onRefreshed = ({ root }: { readonly root: Root }): void => {
    const opened = this.#roots.get(root)
    if (opened !== undefined) opened.tryAgain()
    // A root that is still being prepared is opened when it is in its place.
    else if (root.isIndexed && this.#followed.includes(root)) this.#open(root, false)
  }

  readonly #onChanged = (changes: readonly IndexChange[]): void => {
    if (this.#followed !== this.catalog.roots) this.#followRoots()
    for (const change of changes) this.#roots.get(change.root)?.take(change)
  }

  /** Follows new roots and drops removed ones. A name keeps its content until the new root has been read. */
  #followRoots (): void {
    const before = this.#followed
    this.#followed = this.catalog.roots
    for (const root of before) {
      if (this.#followed.includes(root)) continue
      this.#roots.get(root)?.close()
      this.#roots.delete(root)
    }
    for (const root of this.#followed) if (!before.includes(root)) this.#open(root, true)
    for (const name of [...this.claims.keys()]) this.resolve(name, true)
  }

  #open (root: Root, areNews: boolean): void {
    const opened = new RootLedger(root, this)
    this.#roots.set(root, opened)
    opened.start(areNews)
  }

  /** Records the contents under a name, and emits a change if they differ, unless `isNews` is false. */
  resolve (name: string, emitsChange: boolean): void {
    const now: Claim[] = []
    for (const root of this.#followed) {
      const ledger = this.#roots.get(root)
      if (ledger === undefined || !root.folders.has(name)) continue
      const content = ledger.contents.get(name)
      if (content === undefined) return
      now.push({ root: root.name, content })
    }
    const before = this.claims.get(name) ?? []
    const isSame = before.length === now.length && before.every(({ root, content }, index) =>
      root === now[index]?.root && hasSameContent(content, now[index].content))
    if (isSame) return
    if (now.length === 0) this.claims.delete(name)
    else this.claims.set(name, now)
    this.version++
    if (!emitsChange) return
    const change = { name, before, now, version: this.version }
    this.journal.push(change)
    if (this.journal.length > MAX_JOURNAL) this.journal.shift()
    this.emit('change', change)
  }
}

/** A skill to read, with what the catalog knows about it. Empty if the skill is read again after a failure. */
type Task = Partial<Pick<IndexChange, 'now' | 'walk'>>

/** Reads the skills of one root, one after the other, and keeps their contents. */
class RootLedger {
  readonly contents = new Map<string, Content>()
  isFilled = false
  readonly #root: Root
  readonly #ledger: Ledger
  /** Skills still to be read: changed ones, those present at the start, and those that failed. */
  readonly #changed = new Map<string, Task>()
  readonly #initial = new Set<string>()
  readonly #failed = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #isWorking = false
  #isClosed = false

  constructor (root: Root, ledger: Ledger) {
    this.#root = root
    this.#ledger = ledger
  }

  /** @param areNews whether skills that differ from earlier ones of the same name are reported */
  start (areNews: boolean): void {
    this.isFilled = areNews
    for (const name of this.#root.folders.keys()) {
      if (areNews) {
        this.#changed.set(name, {})
      } else {
        this.#initial.add(name)
        this.#set(name, UNREAD, false)
      }
    }
    // The changes of new roots follow, and are taken one by one.
    if (!areNews) void this.#work()
  }

  take ({ name, now, walk }: IndexChange): void {
    if (this.#root.folders.has(name)) {
      const isNew = !this.contents.has(name) && !this.#changed.has(name)
      this.#changed.set(name, { now, walk })
      this.#failed.delete(name)
      // Lists already show the new skill, so its removal must be reported even if it was never read.
      if (isNew) this.#set(name, NEW, false)
      void this.#work()
      return
    }
    for (const names of [this.#changed, this.#initial, this.#failed, this.contents]) names.delete(name)
    this.#ledger.resolve(name, true)
  }

  /** Reads the skills again whose last read has failed. */
  tryAgain (): void {
    for (const name of this.#failed) this.#changed.set(name, {})
    this.#failed.clear()
    void this.#work()
  }

  hasUnread (isGranted: (name: string) => boolean): boolean {
    return [...this.#changed.keys(), ...this.#initial, ...this.#failed].some(isGranted)
  }

  close (): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  /** Reads changed skills first, then those present at the start. */
  async #work (): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    for (let name = this.#next(); name !== undefined; name = this.#next()) {
      const task = this.#changed.get(name)
      const content = await this.#read(name, task)
      if (this.#isClosed) return
      const hasChangedAgain = this.#changed.get(name) !== task
      if (!hasChangedAgain) this.#changed.delete(name)
      this.#initial.delete(name)
      if (this.#root.folders.has(name)) {
        if (content === undefined) this.#fail(name)
        // That it was read may be how its change was noticed.
        else this.#set(name, content, task !== undefined || hasChangedAgain)
      }
      await yieldIfNeeded()
    }
    this.#isWorking = false
  }

  #set (name: string, content: Content, isNews: boolean): void {
    this.contents.set(name, content)
    this.#ledger.resolve(name, isNews)
  }

  #next (): string | undefined {
    if (this.#isClosed) return undefined
    if (!this.isFilled && this.#initial.size === 0) {
      this.isFilled = true
      this.#ledger.emit('filled')
    }
    return this.#changed.keys().next().value ?? this.#initial.values().next().value
  }

  /** Computes the content of a skill as it is indexed; undefined if the disk has another state or does not answer. */
  async #read (name: string, task: Task = {}): Promise<Content | undefined> {
    const { catalog, log, readers } = this.#ledger
    const skill = catalog.skillsIn(this.#root).get(name)
    if (skill === undefined || skill.folder !== this.#root.folders.get(name)) return undefined
    const walk = task.now === skill ? task.walk : undefined
    try {
      const { revision } = await new PresentState(skill, skill, catalog, readers > 0, walk).manifest()
      return contentOf(name, revision, skill.digest)
    } catch (err) {
      const code = err instanceof SkillError ? err.code : undefined
      if (code !== undefined && TRANSIENT.has(code)) return undefined
      if (code === undefined) log.warn({ err, skill: name }, 'revision of a skill could not be computed')
      return contentOf(name, undefined, skill.digest)
    }
  }

  /** A skill that differs from its index fails at each read until it has been compared with the disk. */
  #fail (name: string): void {
    this.#failed.add(name)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      for (const name of this.#failed) this.#ledger.catalog.emit('stale', { root: this.#root, name })
    }, RETRY_MS).unref()
  }
}

/** Errors that do not say what the content of a skill is. */
const TRANSIENT: ReadonlySet<string> = new Set(['skill_changing', 'skill_not_found', 'disk_not_answering'])

/** Whether two contents are the same, in the same root or not. */
export function hasSameContent (a: Content | undefined, b: Content | undefined): boolean {
  if (a === b || a === undefined || b === undefined || a.part === 0n || b.part === 0n) return a === b
  return a.revision === b.revision && (a.revision !== undefined || a.mainFile === b.mainFile)
}

function contentOf (name: string, revision: string | undefined, mainFile: string | undefined): Content {
  return { revision, mainFile, part: BigInt(`0x${hash('sha256', `${name}\0${revision ?? ''}`)}`) }
}
