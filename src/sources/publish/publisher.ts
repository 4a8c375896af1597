import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ListedFolder, Listing } from '../../core/roots/list-root.ts'
import { isJsonObject } from '../../core/shared/json.ts'
import { Signal } from '../signal.ts'
import { isSafeName } from '../../core/shared/skill-name.ts'
import { isFolder } from '../../config/files/files.ts'
import type { PublishedSkill } from './plan.ts'
import type { SourceFiles } from './source-tree.ts'

/** Names the folder of each skill, and the state that they are of. It is only ever replaced, by a rename. */
const LISTING_FILE = 'skills.json'

const DIGEST = /^[\da-f]{40}$/

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

const NO_STATE: PublishedState = { revision: '', settings: '', memory: {}, changedAt: '', report: undefined }

/**
 * The folder in which the skills of one source are published. The folder of a skill is named by its content, written
 * once and never changed; a listing names the folders of one state. A change of one skill writes one folder and the
 * listing.
 */
export class Publisher implements Listing {
  readonly changed = new Signal()
  readonly isFixed = true
  #folder: string
  /** Digests by name. */
  #listed: ReadonlyMap<string, string> = new Map()
  #folders: ReadonlyMap<string, ListedFolder> | undefined

  /** @param folder of this source alone */
  constructor (folder: string) {
    this.#folder = folder
  }

  get folders (): Listing['folders'] {
    return this.#folders
  }

  /** For what is being fetched; empty at each start. */
  get tmp (): string {
    return join(this.#folder, 'tmp')
  }

  get skillsFolder (): string {
    return join(this.#folder, 'skills')
  }

  /**
   * Makes the folders, and removes what a process that was killed has left.
   * @param settings what was published by others may hold skills that these leave out
   */
  async open (settings = ''): Promise<PublishedState | undefined> {
    await rm(this.tmp, { recursive: true, force: true })
    await this.#makeFolders()
    this.#folder = await realpath(this.#folder)
    const { state, skills } = await readListing(join(this.#folder, LISTING_FILE))
    if (!isState(state) || state.settings !== settings || !isJsonObject(skills)) return undefined
    const listed = Object.entries(skills)
      .filter((entry): entry is [string, string] => isSafeName(entry[0]) && DIGEST.test(String(entry[1])))
    const isWhole = await this.#listPresent(new Map(listed))
    await this.#sweep(this.#listed.values())
    // What somebody has removed is fetched again.
    return isWhole ? state : { ...state, memory: {} }
  }

  /** Makes the folders again that somebody has removed. False: skills are missing, and not listed any more. */
  async restore (): Promise<boolean> {
    await this.#makeFolders()
    return await this.#listPresent(this.#listed)
  }

  /** Writes the folders of skills that are not there. Nobody sees them before they are listed. */
  async add (skills: readonly PublishedSkill[], write: SourceFiles['write'], signal: AbortSignal): Promise<void> {
    const missing: PublishedSkill[] = []
    for (const skill of skills) if (!await isFolder(join(this.skillsFolder, skill.digest))) missing.push(skill)
    if (missing.length > 0) await this.#write(missing, write, signal)
  }

  /** Where those skills are that are not listed with the same content, by name. */
  changedAmong (skills: readonly PublishedSkill[]): ReadonlyMap<string, string> {
    const changed = skills.filter(({ name, digest }) => this.#listed.get(name) !== digest)
    return new Map(changed.map(({ name, digest }) => [name, this.#placeOf(name, digest)]))
  }

  /**
   * Lists these skills, whose folders were added, in place of those before, in one step. Folders of the listing before
   * stay until the next one, for readers who have begun.
   */
  async list (skills: readonly PublishedSkill[], state = NO_STATE): Promise<void> {
    const before = this.#listed
    const listed = new Map(skills.map(({ name, digest }) => [name, digest]))
    const text = JSON.stringify({ skills: Object.fromEntries(listed), state })
    const temporary = join(this.tmp, LISTING_FILE)
    await writeFile(temporary, `${text}\n`, { flush: true })
    await rename(temporary, join(this.#folder, LISTING_FILE))
    this.#list(listed)
    await this.#sweep([...listed.values(), ...before.values()])
  }

  #placeOf (name: string, digest: string): string {
    return join(this.skillsFolder, digest, name)
  }

  /** Files first and links afterwards: nothing is ever written through a link. */
  async #write (skills: readonly PublishedSkill[], write: SourceFiles['write'], signal: AbortSignal): Promise<void> {
    const staging = await mkdtemp(join(this.tmp, 'skills-'))
    try {
      const all = skills.flatMap(({ name, digest, files }) =>
        files.map(({ path, entry }) => ({ entry, path: join(staging, digest, name, path) })))
      for (const { name, digest } of skills) await mkdir(join(staging, digest, name), { recursive: true, mode: 0o755 })
      const folders = new Set(all.map(({ path }) => dirname(path)))
      for (const folder of folders) await mkdir(folder, { recursive: true, mode: 0o755 })
      await write(all.filter(({ entry }) => entry.kind === 'file'), signal)
      for (const { entry, path } of all) if (entry.kind === 'link') await symlink(entry.target ?? '', path)
      for (const { digest } of skills) await rename(join(staging, digest), join(this.skillsFolder, digest))
    } finally {
      await rm(staging, { recursive: true, force: true })
    }
  }

  /** Removes the folders of other digests. They are moved first: half a folder would be taken for a whole one. */
  async #sweep (kept: Iterable<string>): Promise<void> {
    const all = new Set(kept)
    for (const name of await readdir(this.skillsFolder)) {
      if (all.has(name)) continue
      const gone = join(this.tmp, name)
      // What the disk does not remove goes another time.
      await rename(join(this.skillsFolder, name), gone).then(() => rm(gone, { recursive: true })).catch(() => {})
    }
  }

  /** Lists those skills whose folders are there. False when some are missing. */
  async #listPresent (listed: ReadonlyMap<string, string>): Promise<boolean> {
    const there = new Set(await readdir(this.skillsFolder))
    const present = new Map([...listed].filter(([, digest]) => there.has(digest)))
    if (present.size < listed.size || listed !== this.#listed) this.#list(present)
    return present.size === listed.size
  }

  /** Readers get it from now on. */
  #list (listed: ReadonlyMap<string, string>): void {
    const before = this.#listed
    this.#listed = listed
    const isSame = before.size === listed.size && [...listed].every(([name, digest]) => before.get(name) === digest)
    if (isSame && this.#folders !== undefined) return
    this.#folders = new Map([...listed].map(([name, digest]) => {
      const path = this.#placeOf(name, digest)
      return [name, { path, realPath: path }]
    }))
    this.changed.emit()
  }

  async #makeFolders (): Promise<void> {
    for (const folder of [this.tmp, this.skillsFolder]) await mkdir(folder, { recursive: true, mode: 0o700 })
  }
}

async function readListing (path: string): Promise<{ readonly state?: unknown, readonly skills?: unknown }> {
  try {
    const listing: unknown = JSON.parse(await readFile(path, 'utf8'))
    return isJsonObject(listing) ? listing : {}
  } catch {
    return {}
  }
}

function isState (value: unknown): value is PublishedState {
  return isJsonObject(value) && typeof value['revision'] === 'string' && typeof value['settings'] === 'string' &&
    isJsonObject(value['memory']) && typeof value['changedAt'] === 'string'
}
