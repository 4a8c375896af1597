import { hash, randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { Catalog, IndexChange } from './catalog.ts'
import { PresentState } from './revisions/state.ts'
import type { Root } from './roots/root.ts'
import { yieldIfNeeded } from './shared/async.ts'
import { SkillError } from './shared/errors.ts'
import { type CoreLog, SILENT } from './shared/log.ts'

/** Changes that are remembered, those of skills that a caller does not see included. */
const MAX_JOURNAL = 8_192

/** A skill that is being written, or whose disk does not answer, is read again after this pause, in milliseconds. */
const RETRY_MS = 200

export interface Content {
  /** Of its manifest; undefined for a skill whose files cannot be listed, and for one that has not been read yet. */
  readonly revision: string | undefined
  /** Digest of its main file: tells states without a revision apart. */
  readonly mainFile: string | undefined
  /** Its part in the revision of the catalog: in a sum, one change among many costs two hashes. */
  readonly part: bigint
}

/** A skill that was there at the beginning, and one that came since, both not read yet: they are equal to nothing. */
const UNREAD: Content = { revision: undefined, mainFile: undefined, part: 0n }
export const NEW: Content = { ...UNREAD }

/** The content that a root has for a name. */
export interface Claim {
  readonly root: string
  readonly content: Content
}

/** Another content for a name, in any root. */
export interface LedgerChange {
  readonly name: string
  /** In the order of the roots. */
  readonly before: readonly Claim[]
  readonly now: readonly Claim[]
  /** Version of the ledger after it. */
  readonly version: number
  /** How many changes have been reported, this one included. */
  readonly count: number
  /** False for a skill that is recorded for the first time, and was there before. */
  readonly isNews: boolean
}

interface LedgerEvents {
  change: [change: LedgerChange]
  /** Every skill that a root had at the beginning has been read. */
  filled: []
}

/**
 * The revisions of all skills of a catalog, each read once for all views. From `start` on it follows the catalog: the
 * skills of each root are read in the background after its first index, and then those that change.
 */
export class Ledger extends EventEmitter<LedgerEvents> {
  readonly catalog: Catalog
  readonly log: CoreLog
  readonly #roots = new Map<Root, RootLedger>()
  /** What the roots have under each name, in their order. */
  readonly claims = new Map<string, readonly Claim[]>()
  /** The latest that were reported. */
  readonly journal: LedgerChange[] = []
  readonly #secret = randomBytes(16).toString('hex')
  /** Number of subscribers that get the revisions of changes: while there are any, these revisions stay readable. */
  readers = 0
  /** Goes up with each change, reported or not. */
  version = 0
  /** How many changes have been reported. */
  count = 0
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
    for (const root of this.#followed) this.#roots.set(root, new RootLedger(root, this))
    this.catalog.on('changed', this.#onChanged).on('indexed', this.#onIndexed)
    for (const root of this.#followed) if (root.isIndexed) this.#onIndexed(root)
  }

  close (): void {
    this.#isStarted = true
    this.catalog.off('changed', this.#onChanged).off('indexed', this.#onIndexed)
    for (const root of this.#roots.values()) root.close()
    this.removeAllListeners()
  }

  /** Names a number of reported changes for this process alone, without telling the number. */
  idOf (count: number): string {
    return hash('sha256', `${this.#secret}${count}`).slice(0, 16)
  }

  /** The count since when all skills of these roots have been read; undefined while they have not. */
  completeSince (isGranted: (root: string) => boolean): number | undefined {
    let since: number | undefined = this.#isStarted ? 0 : undefined
    for (const [{ name }, { filledAt }] of this.#roots) {
      if (isGranted(name)) since = since === undefined || filledAt === undefined ? undefined : Math.max(since, filledAt)
    }
    return since
  }

  /** Whether one of these skills has changed and was not read since. */
  isReading (isGranted: (root: string, name: string) => boolean): boolean {
    return [...this.#roots].some(([{ name: root }, ledger]) => ledger.unread().some((name) => isGranted(root, name)))
  }

  readonly #onIndexed = (root: Root): void => { this.#roots.get(root)?.fill() }

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
    for (const root of this.#followed) {
      if (this.#roots.has(root)) continue
      const opened = new RootLedger(root, this)
      this.#roots.set(root, opened)
      opened.follow()
    }
    for (const name of [...this.claims.keys()]) this.resolve(name, true)
  }

  /** Records what the roots have under a name, and reports it if it differs. */
  resolve (name: string, isNews: boolean): void {
    const now: Claim[] = []
    for (const root of this.#followed) {
      const ledger = this.#roots.get(root)
      if (ledger?.isFollowing !== true || !root.folders.has(name)) continue
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
    if (isNews) this.count++
    const change = { name, before, now, version: ++this.version, count: this.count, isNews }
    if (isNews) this.journal.push(change)
    if (this.journal.length > MAX_JOURNAL) this.journal.shift()
    this.emit('change', change)
  }
}

/** What is known of a change: nothing, when a skill is read again because reading it failed. */
type Task = Partial<Pick<IndexChange, 'now' | 'walk'>>

/** The contents of the skills of one root, which are read one after the other. */
class RootLedger {
  readonly contents = new Map<string, Content>()
  /** The count of reported changes when all skills had been read; undefined before. */
  filledAt: number | undefined
  isFollowing = false
  readonly #root: Root
  readonly #ledger: Ledger
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

  /** Reads all skills, which are no news. */
  fill (): void {
    this.isFollowing = true
    for (const name of this.#root.folders.keys()) {
      this.#initial.add(name)
      this.#set(name, UNREAD, false)
    }
    void this.#work()
  }

  /** Reads all skills, which are news as far as they differ from what had their names before. */
  follow (): void {
    this.isFollowing = true
    this.filledAt = 0
    for (const name of this.#root.folders.keys()) this.#changed.set(name, {})
    void this.#work()
  }

  take ({ name, now, walk }: IndexChange): void {
    if (!this.isFollowing) return
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

  /** Names of skills that have changed, or were there at the beginning, and are still to be read. */
  unread (): readonly string[] {
    return [...this.#changed.keys(), ...this.#initial, ...this.#failed]
  }

  close (): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  /** Changes first, then what was there at the beginning. */
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
    if (this.filledAt === undefined && this.#initial.size === 0) {
      this.filledAt = this.#ledger.count
      this.#ledger.emit('filled')
    }
    return this.#changed.keys().next().value ?? this.#initial.values().next().value
  }

  /** The content of a skill as the index has it; undefined if the disk has another state, or does not answer. */
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
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      for (const failed of this.#failed) {
        this.#ledger.catalog.emit('stale', { root: this.#root, name: failed })
        if (!this.#changed.has(failed)) this.#changed.set(failed, {})
      }
      this.#failed.clear()
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
