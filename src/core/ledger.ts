import { hash } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { Catalog, IndexChange } from './catalog.ts'
import { PresentState } from './revisions/state.ts'
import type { Root } from './roots/root.ts'
import { yieldIfNeeded } from './shared/async.ts'
import { SkillError } from './shared/errors.ts'
import { type CoreLog, SILENT } from './shared/log.ts'

/** Changes that are remembered, including those of skills that a caller does not see. */
const MAX_JOURNAL = 8_192

/** Pause before a skill that could not be read, since it is being written or its disk is slow, is read again. */
const RETRY_MS = 200

export interface Content {
  /** Of the manifest; undefined for a skill whose files cannot be listed, and for one that has not been read yet. */
  readonly revision: string | undefined
  /** Digest of the main file, which tells states without a revision apart. */
  readonly mainFile: string | undefined
  /** What the skill adds to the revision of the catalog, which is a sum: one change among many costs two hashes. */
  readonly part: bigint
}

/** A skill that was there at the beginning, and one that came since; both are not read yet, and equal to nothing. */
const UNREAD: Content = { revision: undefined, mainFile: undefined, part: 0n }
export const NEW: Content = { ...UNREAD }

/** The content that a root has for a name. */
export interface Claim {
  readonly root: string
  readonly content: Content
}

/** What the roots, in their order, have under a name before and after a change of a skill. */
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
  /** What the roots have under each name, in their order. */
  readonly claims = new Map<string, readonly Claim[]>()
  /** The latest changes. */
  readonly journal: LedgerChange[] = []
  /** Number of subscribers that get the revisions of changes: while there are any, these revisions stay readable. */
  readers = 0
  /** Goes up with each new content of a name. */
  version = 0
  /** The roots whose skills are read, or have been. */
  readonly #roots = new Map<Root, RootLedger>()
  #followed: readonly Root[] = []
  #isStarted = false

  constructor (catalog: Catalog, log: CoreLog = SILENT) {
    super()
    this.setMaxListeners(0)
    this.catalog = catalog
    this.log = log
  }

  /** Begins to read and to follow. A ledger that is not started knows nothing. */
  start (): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#followed = this.catalog.roots
    this.catalog.on('changed', this.#onChanged).on('indexed', this.#onIndexed)
    for (const root of this.#followed) if (root.isIndexed) this.#onIndexed(root)
  }

  close (): void {
    this.#isStarted = true
    this.catalog.off('changed', this.#onChanged).off('indexed', this.#onIndexed)
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

  /** A root that is still being prepared is opened when it is in its place. */
  readonly #onIndexed = (root: Root): void => { if (this.#followed.includes(root)) this.#open(root, false) }

  readonly #onChanged = (changes: readonly IndexChange[]): void => {
    if (this.#followed !== this.catalog.roots) this.#followRoots()
    for (const change of changes) this.#roots.get(change.root)?.take(change)
  }

  /** A name keeps its content until a new root that has it was read. */
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

  /** Records what the roots have under a name, and reports it if it differs and is news. */
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

/** What the catalog knows of a change: nothing, when a skill is read again because reading it failed. */
type Task = Partial<Pick<IndexChange, 'now' | 'walk'>>

/** The contents of the skills of one root, which it reads one after the other. */
class RootLedger {
  readonly contents = new Map<string, Content>()
  isFilled = false
  readonly #root: Root
  readonly #ledger: Ledger
  /** What is to be read: skills that have changed, those that were there at the beginning, and those that failed. */
  readonly #changed = new Map<string, Task>()
  readonly #initial = new Set<string>()
  readonly #failed = new Set<string>()
  #isWorking = false
  #isClosed = false

  constructor (root: Root, ledger: Ledger) {
    this.#root = root
    this.#ledger = ledger
  }

  /** Reads all skills. @param areNews whether those are reported that differ from what had their names before */
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
      // Lists have it already, so that its end is news even if it ends before it is read.
      if (isNew) this.#set(name, NEW, false)
      void this.#work()
      return
    }
    for (const names of [this.#changed, this.#initial, this.#failed, this.contents]) names.delete(name)
    this.#ledger.resolve(name, true)
  }

  hasUnread (isGranted: (name: string) => boolean): boolean {
    return [...this.#changed.keys(), ...this.#initial, ...this.#failed].some(isGranted)
  }

  close (): void {
    this.#isClosed = true
  }

  /** Reads changes first, then what was there at the beginning. */
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
        if (content === undefined) this.#tryAgain(name)
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

  /** Computes the content of a skill as the index has it; undefined if the disk has another state, or is silent. */
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

  #tryAgain (name: string): void {
    this.#failed.add(name)
    setTimeout(() => {
      if (this.#isClosed || !this.#failed.delete(name)) return
      this.#ledger.catalog.emit('stale', { root: this.#root, name })
      this.#changed.set(name, {})
      void this.#work()
    }, RETRY_MS).unref()
  }
}

/** Codes of errors that say nothing about the content of a skill. */
const TRANSIENT: ReadonlySet<string> = new Set(['skill_changing', 'skill_not_found', 'disk_not_answering'])

/** Whether two contents are the same, whatever roots they are in. */
export function hasSameContent (a: Content | undefined, b: Content | undefined): boolean {
  if (a === b || a === undefined || b === undefined || a.part === 0n || b.part === 0n) return a === b
  return a.revision === b.revision && (a.revision !== undefined || a.mainFile === b.mainFile)
}

function contentOf (name: string, revision: string | undefined, mainFile: string | undefined): Content {
  return { revision, mainFile, part: BigInt(`0x${hash('sha256', `${name}\0${revision ?? ''}`)}`) }
}
