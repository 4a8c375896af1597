import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, realpath, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ListedFolder, Listing } from '../../core/roots/listing.ts'
import { errorCode } from '../../core/shared/system-errors.ts'
import type { FoundSkill } from '../../core/layout/layout.ts'
import { isJsonObject } from '../../core/shared/json.ts'
import { createQueue } from '../../core/shared/async.ts'
import { Signal } from '../../core/shared/signal.ts'
import { isSafeName } from '../../core/shared/skill-name.ts'
import { planOf, type SkillToWrite } from './plan.ts'
import { readJson, replaceFile } from './state-folder.ts'
import type { SourceEntry, SourceTree } from './source-tree.ts'

/**
 * Names the skills of what was published last, and their state. It is only ever replaced, by a rename: of two files, a process that
 * is killed could leave those of two states.
 */
const LISTING_FILE = 'skills.json'

/** How long a folder that no listing names any more stays, in milliseconds: slow clients have a minute for an answer. */
const RETIRED_MS = 120_000

/** What was published last, beside its skills. */
export interface PublishedState {
  readonly revision: string
  /** Of the settings that decide what of a source is published. */
  readonly settings: string
  /** What the kind of source keeps for the next fetch. */
  readonly memory: Readonly<Record<string, string>>
  /** ISO 8601. */
  readonly changedAt: string
  readonly report: unknown
}

interface PublishOptions {
  /** Names of the skills that may be others than before, in the state that follows it; undefined: all may. */
  readonly only?: ReadonlySet<string> | undefined
  readonly state: PublishedState
  readonly prefix: string
  readonly signal: AbortSignal
  /** Names the state in sentences. */
  readonly where: string
  /** Called when the files are read. Throws a SourceError if they are of no one state. */
  readonly confirm?: (() => Promise<void>) | undefined
  /** Called with the real paths of the skills that are others than before, by name, before readers see them. Throws a SourceError to refuse them. */
  readonly approve?: ((folders: ReadonlyMap<string, string>, skillsFolder: string) => Promise<void>) | undefined
}

interface PublishedChange {
  readonly added: number
  readonly changed: number
  readonly removed: number
}

/**
 * The folder in which one source publishes its skills. A folder of a skill is named by what is in it, written once, and
 * never changed; a listing names the folders of one state. A push that changes one skill of 10,000 thus writes one folder and a
 * listing, and readers compare one skill.
 */
export class Publisher implements Listing {
  readonly changed = new Signal<void>()
  readonly isFixed = true
  readonly #folder: string
  readonly #confirm: () => Promise<void>
  /** No folder is removed while a state that may name it is published. */
  readonly #inTurn = createQueue()
  /** Folders that no listing names any more, with the timer that removes them: the machine's clock may be set. */
  readonly #retired = new Map<string, NodeJS.Timeout>()
  /** Digests by name. */
  #listed: ReadonlyMap<string, string> = new Map()
  /** Bytes of each skill, by name; as far as this process has published them. */
  #sizes: ReadonlyMap<string, number> = new Map()
  #folders: ReadonlyMap<string, ListedFolder> | undefined
  #realFolder = ''

  /** @param confirm throws while another process may write into the folder */
  constructor (folder: string, confirm: () => Promise<void>) {
    this.#folder = folder
    this.#confirm = confirm
  }

  get folders (): ReadonlyMap<string, ListedFolder> | undefined {
    return this.#folders
  }

  get skills (): number {
    return this.#listed.size
  }

  /** Room for what is being fetched; empty at each start. */
  get tmp (): string {
    return join(this.#folder, 'tmp')
  }

  /**
   * Makes the folders, and removes what a process that was killed left behind.
   * @param settings those of now: what was published by others may hold skills that these leave out
   */
  async open (settings: string): Promise<PublishedState | undefined> {
    await rm(this.tmp, { recursive: true, force: true })
    await this.#makeFolders()
    this.#realFolder = await realpath(this.#skillsFolder)
    const listing = await readJson(join(this.#folder, LISTING_FILE))
    if (!isJsonObject(listing) || !isJsonObject(listing.skills)) return undefined
    const { state } = listing
    if (isState(state) && state.settings !== settings) return undefined
    const listed = Object.entries(listing.skills).filter((entry): entry is [string, string] => isSafeName(entry[0]) && typeof entry[1] === 'string' && DIGEST.test(entry[1]))
    const there = new Set(await readdir(this.#skillsFolder))
    const present = listed.filter(([, digest]) => there.has(digest))
    this.#list(new Map(present))
    await this.#removeUnlisted()
    if (!isState(state)) return undefined
    // What somebody has removed is fetched again, and not taken for what the source has.
    return present.length === listed.length ? state : { ...state, memory: {} }
  }

  /** Makes the folders again that somebody has removed. False: skills are missing, and are not listed any more. */
  async restore (): Promise<boolean> {
    await this.#makeFolders()
    const there = new Set(await readdir(this.#skillsFolder))
    const present = [...this.#listed].filter(([, digest]) => there.has(digest))
    if (present.length === this.#listed.size) return true
    this.#list(new Map(present))
    return false
  }

  async publish (tree: SourceTree, found: readonly FoundSkill[], options: PublishOptions): Promise<PublishedChange> {
    return await this.#inTurn(async () => {
      const { only, state, signal, confirm, approve } = options
      const before = this.#listed
      const { listed, sizes, skills } = await planOf(tree, found, { listed: before, sizes: this.#sizes }, options)
      const others = [...listed].filter(([name, digest]) => before.get(name) !== digest)
      try {
        await this.#confirm()
        const there = only === undefined ? new Set(await readdir(this.#skillsFolder)) : undefined
        await this.#write(tree, skills.filter(({ digest }) => !(there?.has(digest) ?? existsSync(join(this.#skillsFolder, digest)))), signal)
        await confirm?.()
        await approve?.(new Map(others.map(([name, digest]) => [name, join(this.#realFolder, digest, name)])), this.#realFolder)
        await this.#confirm()
        signal.throwIfAborted()
        await replaceFile(join(this.#folder, LISTING_FILE), `${JSON.stringify({ skills: Object.fromEntries(listed), state })}\n`, this.tmp)
      } catch (error) {
        // No listing names what was written.
        this.#retire(listed)
        throw error
      }
      for (const digest of listed.values()) this.#retired.delete(digest)
      this.#sizes = sizes
      this.#list(listed)
      this.#retire(before)
      const changed = others.filter(([name]) => before.has(name)).length
      const added = others.length - changed
      return { added, changed, removed: before.size + added - listed.size }
    })
  }

  /** Waits for folders that are being removed: afterwards, another process may write into the folder. */
  async close (): Promise<void> {
    await this.#inTurn(async () => { for (const timer of this.#retired.values()) clearTimeout(timer) })
  }

  get #skillsFolder (): string {
    return join(this.#folder, 'skills')
  }

  /** Files first and links afterwards: nothing is ever written through a link. */
  async #write (tree: SourceTree, skills: readonly SkillToWrite[], signal: AbortSignal): Promise<void> {
    if (skills.length === 0) return
    const staging = await mkdtemp(join(this.tmp, 'skills-'))
    try {
      const files: Array<{ entry: SourceEntry, path: string }> = []
      const links: Array<{ target: string, path: string }> = []
      for (const { digest, name, files: own } of skills) {
        const folders = new Set([join(staging, digest, name)])
        for (const { path, entry } of own) {
          const to = join(staging, digest, name, path)
          if (entry.kind === 'submodule') continue
          folders.add(dirname(to))
          if (entry.kind === 'link') links.push({ target: entry.target ?? '', path: to })
          else files.push({ entry, path: to })
        }
        for (const folder of folders) await mkdir(folder, { recursive: true, mode: 0o755 })
      }
      await tree.files.write(files, signal)
      for (const { target, path } of links) await symlink(target, path)
      for (const { digest } of skills) await moveInto(join(staging, digest), join(this.#skillsFolder, digest))
    } finally {
      await rm(staging, { recursive: true, force: true })
    }
  }

  /** Has those folders removed later that are not listed. */
  #retire (folders: ReadonlyMap<string, string>): void {
    const gone = [...folders].filter(([name, digest]) => this.#listed.get(name) !== digest)
    if (gone.length === 0) return
    const timer = setTimeout(() => { void this.#inTurn(() => this.#sweep(timer)) }, RETIRED_MS).unref()
    for (const [, digest] of gone) this.#retired.set(digest, timer)
  }

  async #sweep (timer: NodeJS.Timeout): Promise<void> {
    const due = [...this.#retired].filter(([, own]) => own === timer)
    if (due.length === 0) return
    try {
      // Another process may have listed them again.
      await this.#confirm()
      for (const [digest] of due) {
        await rm(join(this.#skillsFolder, digest), { recursive: true, force: true })
        this.#retired.delete(digest)
      }
    } catch {
      // What stays is tried again.
      timer.refresh()
    }
  }

  /** Readers get it from now on. The same state stays the same map, and the same skill the same object. */
  #list (listed: ReadonlyMap<string, string>): void {
    const before = this.#folders
    if (before !== undefined && isSameMap(this.#listed, listed)) return
    const folders = new Map<string, ListedFolder>()
    for (const [name, digest] of listed) {
      const known = this.#listed.get(name) === digest ? before?.get(name) : undefined
      folders.set(name, known ?? { path: join(this.#skillsFolder, digest, name), realPath: join(this.#realFolder, digest, name) })
    }
    this.#listed = listed
    this.#folders = folders
    this.changed.emit()
  }

  async #makeFolders (): Promise<void> {
    for (const folder of [this.tmp, this.#skillsFolder]) await mkdir(folder, { recursive: true, mode: 0o700 })
  }

  async #removeUnlisted (): Promise<void> {
    const listed = new Set(this.#listed.values())
    for (const name of await readdir(this.#skillsFolder)) {
      if (!listed.has(name)) await rm(join(this.#skillsFolder, name), { recursive: true, force: true })
    }
  }
}

const DIGEST = /^[\da-f]{40}$/

async function moveInto (from: string, to: string): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    // Two skills of one state cannot have one digest: what is there was left by a publication that failed later.
    if (errorCode(error) !== 'ENOTEMPTY' && errorCode(error) !== 'EEXIST') throw error
  }
}

function isSameMap (a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  if (a.size !== b.size) return false
  for (const [key, value] of a) if (b.get(key) !== value) return false
  return true
}

function isState (value: unknown): value is PublishedState {
  return isJsonObject(value) && typeof value['revision'] === 'string' && typeof value['settings'] === 'string' && isJsonObject(value['memory']) && typeof value['changedAt'] === 'string'
}
