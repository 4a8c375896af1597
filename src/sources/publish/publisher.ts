import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readdir, realpath, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import pLimit from 'p-limit'
import type { ListedFolder, Listing } from '../../core/roots/list-root.ts'
import { isJsonObject } from '../../core/shared/json.ts'
import { Signal } from '../signal.ts'
import { isSafeName } from '../../core/shared/skill-name.ts'
import { errorCode } from '../../core/shared/system-errors.ts'
import type { SourceEntry, SourceFiles } from './source-tree.ts'
import { readJson, replaceFile } from './state-folder.ts'

/** Names the folder of each skill, and the state that they are of. It is only ever replaced, by a rename. */
const LISTING_FILE = 'skills.json'

/** How long a folder stays that no listing names any more, in milliseconds: slow clients have a minute. */
const RETIRED_MS = 120_000

const DIGEST = /^[\da-f]{40}$/

/** A skill that is to be published. The same object stands for the same content. */
export interface PublishedSkill {
  readonly name: string
  /** Sorted by path. */
  readonly files: ReadonlyArray<{ readonly path: string, readonly entry: SourceEntry }>
}

/** What was published last, next to its skills. */
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
  readonly state: PublishedState
  readonly signal: AbortSignal
  /** Called when the files are written. Throws a SourceError if they are not of one state. */
  readonly confirm?: (() => Promise<void>) | undefined
  /**
   * Called with the real paths of the skills that changed, by name, before readers see them. Throws a SourceError to
   * refuse them.
   */
  readonly approve?: ((folders: ReadonlyMap<string, string>, skillsFolder: string) => Promise<void>) | undefined
}

interface PublishedChange {
  readonly added: number
  readonly changed: number
  readonly removed: number
}

/**
 * The folder in which the skills of one source are published. The folder of a skill is named by its content, written
 * once and never changed; a listing names the folders of one state. A change of one skill writes one folder and the
 * listing.
 */
export class Publisher implements Listing {
  readonly changed = new Signal<void>()
  readonly isFixed = true
  readonly #folder: string
  /** No folder is removed while a state that may name it is published. */
  readonly #inTurn = pLimit(1)
  readonly #digests = new WeakMap<PublishedSkill, string>()
  /** Folders that no listing names any more, with the timer that removes them. */
  readonly #retired = new Map<string, NodeJS.Timeout>()
  /** Digests by name. */
  #listed: ReadonlyMap<string, string> = new Map()
  #folders: ReadonlyMap<string, ListedFolder> | undefined
  #realFolder = ''

  constructor (folder: string) {
    this.#folder = folder
  }

  get folders (): ReadonlyMap<string, ListedFolder> | undefined {
    return this.#folders
  }

  get skills (): number {
    return this.#listed.size
  }

  /** For what is being fetched; empty at each start. */
  get tmp (): string {
    return join(this.#folder, 'tmp')
  }

  /**
   * Makes the folders, and removes what a process that was killed has left.
   * @param settings what was published by others may hold skills that these leave out
   */
  async open (settings: string): Promise<PublishedState | undefined> {
    await rm(this.tmp, { recursive: true, force: true })
    await this.#makeFolders()
    this.#realFolder = await realpath(this.#skillsFolder)
    const listing = await readJson(join(this.#folder, LISTING_FILE))
    const { state, skills } = isJsonObject(listing) ? listing : {}
    if (!isState(state) || state.settings !== settings || !isJsonObject(skills)) return undefined
    const listed = Object.entries(skills)
      .filter((entry): entry is [string, string] => isSafeName(entry[0]) && DIGEST.test(String(entry[1])))
    const isWhole = await this.#listPresent(new Map(listed))
    const named = new Set(this.#listed.values())
    for (const name of await readdir(this.#skillsFolder)) if (!named.has(name)) await this.#remove(name)
    // What somebody has removed is fetched again.
    return isWhole ? state : { ...state, memory: {} }
  }

  /** Makes the folders again that somebody has removed. False: skills are missing, and not listed any more. */
  async restore (): Promise<boolean> {
    await this.#makeFolders()
    return await this.#listPresent(this.#listed)
  }

  async publish (
    skills: readonly PublishedSkill[], write: SourceFiles['write'], options: PublishOptions
  ): Promise<PublishedChange> {
    return await this.#inTurn(async () => {
      const { state, signal, confirm, approve } = options
      const before = this.#listed
      const listed = new Map(skills.map((skill) => [skill.name, this.#digestOf(skill)]))
      const changed = [...listed].filter(([name, digest]) => before.get(name) !== digest)
      try {
        const there = new Set(await readdir(this.#skillsFolder))
        await this.#write(skills.filter((skill) => !there.has(this.#digestOf(skill))), write, signal)
        await confirm?.()
        const folderOf = (name: string, digest: string): string => join(this.#realFolder, digest, name)
        await approve?.(new Map(changed.map(([name, digest]) => [name, folderOf(name, digest)])), this.#realFolder)
        signal.throwIfAborted()
        const text = JSON.stringify({ skills: Object.fromEntries(listed), state })
        await replaceFile(join(this.#folder, LISTING_FILE), `${text}\n`, this.tmp)
      } catch (error) {
        // No listing names what was written.
        this.#retire(listed.values())
        throw error
      }
      this.#list(listed)
      this.#retire(before.values())
      const added = changed.filter(([name]) => !before.has(name)).length
      return { added, changed: changed.length - added, removed: before.size + added - listed.size }
    })
  }

  /** Waits for folders that are being removed: afterwards, another process may write into the folder. */
  async close (): Promise<void> {
    await this.#inTurn(async () => { for (const timer of this.#retired.values()) clearTimeout(timer) })
  }

  get #skillsFolder (): string {
    return join(this.#folder, 'skills')
  }

  /** Names a folder by its content and by the skill's name: two skills of one content are two folders. */
  #digestOf (skill: PublishedSkill): string {
    const known = this.#digests.get(skill)
    if (known !== undefined) return known
    const digest = createHash('sha256').update(skill.name)
    for (const { path, entry: { kind, target, id } } of skill.files) {
      if (kind !== 'submodule') digest.update(`\0${kind}\0${path}\0${kind === 'link' ? target ?? '' : id}`)
    }
    const text = digest.digest('hex').slice(0, 40)
    this.#digests.set(skill, text)
    return text
  }

  /** Files first and links afterwards: nothing is ever written through a link. */
  async #write (skills: readonly PublishedSkill[], write: SourceFiles['write'], signal: AbortSignal): Promise<void> {
    if (skills.length === 0) return
    const staging = await mkdtemp(join(this.tmp, 'skills-'))
    try {
      const files: Array<{ entry: SourceEntry, path: string }> = []
      const links: Array<{ target: string, path: string }> = []
      for (const skill of skills) {
        const top = join(staging, this.#digestOf(skill), skill.name)
        const folders = new Set([top])
        for (const { path, entry } of skill.files) {
          if (entry.kind === 'submodule') continue
          const to = join(top, path)
          folders.add(dirname(to))
          if (entry.kind === 'link') links.push({ target: entry.target ?? '', path: to })
          else files.push({ entry, path: to })
        }
        for (const folder of folders) await mkdir(folder, { recursive: true, mode: 0o755 })
      }
      for (const { entry: { stored }, path } of files) {
        signal.throwIfAborted()
        if (stored !== undefined) await copyFile(stored, path, constants.COPYFILE_EXCL)
      }
      const others = files.filter(({ entry }) => entry.stored === undefined)
      if (others.length > 0) await write(others, signal)
      for (const { target, path } of links) await symlink(target, path)
      for (const skill of skills) {
        const digest = this.#digestOf(skill)
        await moveInto(join(staging, digest), join(this.#skillsFolder, digest))
      }
    } finally {
      await rm(staging, { recursive: true, force: true })
    }
  }

  /** Has those folders removed later that are not listed. */
  #retire (digests: Iterable<string>): void {
    const listed = new Set(this.#listed.values())
    for (const digest of listed) this.#retired.delete(digest)
    const gone = [...digests].filter((digest) => !listed.has(digest))
    if (gone.length === 0) return
    const timer = setTimeout(() => { void this.#inTurn(() => this.#sweep(timer)) }, RETIRED_MS).unref()
    for (const digest of gone) this.#retired.set(digest, timer)
  }

  async #sweep (timer: NodeJS.Timeout): Promise<void> {
    try {
      for (const [digest, own] of this.#retired) {
        if (own !== timer) continue
        await this.#remove(digest)
        this.#retired.delete(digest)
      }
    } catch {
      // What stays is tried again.
      timer.refresh()
    }
  }

  async #remove (digest: string): Promise<void> {
    await rm(join(this.#skillsFolder, digest), { recursive: true, force: true })
  }

  /** Lists those skills whose folders are there. False when some are missing. */
  async #listPresent (listed: ReadonlyMap<string, string>): Promise<boolean> {
    const there = new Set(await readdir(this.#skillsFolder))
    const present = new Map([...listed].filter(([, digest]) => there.has(digest)))
    if (present.size < listed.size || listed !== this.#listed) this.#list(present)
    return present.size === listed.size
  }

  /** Readers get it from now on. The same state stays the same map, and the same skill the same object. */
  #list (listed: ReadonlyMap<string, string>): void {
    const before = this.#folders
    const isSame = this.#listed.size === listed.size &&
      [...listed].every(([name, digest]) => this.#listed.get(name) === digest)
    if (before !== undefined && isSame) return
    this.#folders = new Map([...listed].map(([name, digest]) => {
      const known = this.#listed.get(name) === digest ? before?.get(name) : undefined
      const path = join(this.#skillsFolder, digest, name)
      return [name, known ?? { path, realPath: join(this.#realFolder, digest, name) }]
    }))
    this.#listed = listed
    this.changed.emit()
  }

  async #makeFolders (): Promise<void> {
    for (const folder of [this.tmp, this.#skillsFolder]) await mkdir(folder, { recursive: true, mode: 0o700 })
  }
}

async function moveInto (from: string, to: string): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    // What is there has the same content: a publication that failed later has left it.
    if (errorCode(error) !== 'ENOTEMPTY' && errorCode(error) !== 'EEXIST') throw error
  }
}

function isState (value: unknown): value is PublishedState {
  return isJsonObject(value) && typeof value['revision'] === 'string' && typeof value['settings'] === 'string' &&
    isJsonObject(value['memory']) && typeof value['changedAt'] === 'string'
}
