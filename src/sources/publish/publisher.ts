import { EventEmitter } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import type { ListedFolder, Listing } from '../../core/roots/list-root.ts'
import { isSafeName } from '../../core/shared/skill-name.ts'
import { SourceStatusSchema } from '../../schemas/health.ts'
import { parseStateFile } from './folder-lock.ts'
import type { PublishedSkill } from './plan.ts'
import type { ReadFiles } from './source-tree.ts'

/** File with the folder of each skill, and the state that they belong to. It is only ever replaced, by a rename. */
const LISTING_FILE = 'skills.json'

/** Most files of one state that are flushed to disk one by one; measured, 20,000 flushes take a minute. */
const MAX_FLUSHED_FILES = 500

const PublishedStateSchema = Type.Object({
  status: Type.Object({
    revision: Type.String(),
    changed_at: Type.String(),
    // TypeBox does not check the enumeration of SourceStatusSchema.
    layout: Type.Optional(Type.Union(
      [Type.Literal('flat'), Type.Literal('single'), Type.Literal('tree'), Type.Literal('marketplace')]
    )),
    left_out: SourceStatusSchema.properties.left_out
  }),
  /** Data for the next fetch of this kind of source. */
  memory: Type.Record(Type.String(), Type.String()),
  /** Identifies the place in the configuration file: a source edited there serves this state at first. */
  place: Type.Optional(Type.String())
})

const ListingSchema = Type.Object({
  version: Type.Literal(1),
  /** Digests by name. */
  skills: Type.Record(Type.String(), Type.String({ pattern: '^[0-9a-f]{40}$' })),
  state: Type.Optional(PublishedStateSchema)
})

/** The last published state: status and memory, without the skills. */
export type PublishedState = Static<typeof PublishedStateSchema>

/**
 * Publishes the skills of one source in a folder. The folder of a skill is named by a digest of its content, written
 * once and never changed; a listing names the folders of one state. So a change of one skill writes one folder and the
 * listing.
 */
export class Publisher extends EventEmitter<{ changed: [] }> implements Listing {
  readonly isFixed = true
  folders: Listing['folders']
  /** Of the listing. */
  state: PublishedState | undefined
  /** Whether another publisher's skills are listed. */
  isInherited = false
  /** Whether the listing cannot be used: it is damaged or of another version. */
  isDamaged = false
  #folder: string
  #text = ''
  /** Digests by name. */
  #listed: ReadonlyMap<string, string> = new Map()
  /** Number of files written since the last listing. */
  #written = 0

  /** @param folder the folder of this source, as configured; no other source uses it */
  constructor (folder: string) {
    super()
    this.#folder = folder
  }

  /** Runs a job with an empty temporary folder. */
  async withTmp (job: (folder: string) => Promise<void>): Promise<void> {
    const folder = await mkdtemp(join(this.#tmp, 'job-'))
    try {
      await job(folder)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  /** Temporary files; emptied when a process becomes the owner. */
  get #tmp (): string {
    return join(this.#folder, 'tmp')
  }

  get #skillsFolder (): string {
    return join(this.#folder, 'skills')
  }

  /**
   * Makes the folders, and reads the last listing.
   * @param folder the folder to publish in, if it is not the one of the constructor
   */
  async open (folder = this.#folder): Promise<void> {
    this.#folder = folder
    await this.#makeFolders()
    this.#folder = await realpath(folder)
    await this.refresh()
  }

  /** Lists what another process has published. Returns whether this folder has a state. */
  async refresh (): Promise<boolean> {
    const text = await readFile(join(this.#folder, LISTING_FILE), 'utf8').catch(() => '')
    if (text !== '' && text !== this.#text) {
      const listing = parseStateFile(ListingSchema, text)
      this.isDamaged = listing === undefined
      if (listing !== undefined) {
        this.#take(text, listing.state, new Map(Object.entries(listing.skills).filter(([name]) => isSafeName(name))))
        await this.restore()
      }
    }
    return this.state !== undefined && !this.isInherited
  }

  /** Removes files that a killed process has left. Only the owner of the folder may do this. */
  async clean (): Promise<void> {
    await rm(this.#tmp, { recursive: true, force: true })
    await this.#makeFolders()
    await this.#sweep(this.#listed.values())
  }

  /** Lists the skills of another publisher until this one publishes. */
  inherit ({ folders, state }: Publisher): void {
    this.folders = folders
    this.state = state
    this.isInherited = true
    this.emit('changed')
  }

  /**
   * Makes missing folders, and serves the skills that are still there.
   * @returns whether no skill is missing
   */
  async restore (): Promise<boolean> {
    await this.#makeFolders()
    const there = new Set(await readdir(this.#skillsFolder))
    const present = [...this.#listed].filter(([, digest]) => there.has(digest))
    if (this.#text !== '' && present.length !== this.folders?.size) this.#list(present)
    return present.length === this.#listed.size
  }

  /** Writes the folders of skills that do not exist yet. They are not served before they are listed. */
  async add (skills: readonly PublishedSkill[], read: ReadFiles, signal: AbortSignal): Promise<void> {
    const missing: PublishedSkill[] = []
    for (const skill of skills) {
      if (this.#listed.get(skill.name) === skill.digest && this.folders?.has(skill.name) === true) continue
      const stats = await stat(this.#placeOf(skill)).catch(() => undefined)
      if (stats?.isDirectory() !== true) missing.push(skill)
    }
    if (missing.length > 0) await this.withTmp((folder) => this.#write(folder, missing, read, signal))
  }

  /** Returns where those skills are that are not listed with the same content, by name. */
  changedAmong (skills: readonly PublishedSkill[]): ReadonlyMap<string, string> {
    const changed = skills.filter(({ name, digest }) => this.#listed.get(name) !== digest)
    return new Map(changed.map((skill) => [skill.name, this.#placeOf(skill)]))
  }

  /**
   * Lists these skills, whose folders were added, instead of those before, in one step. Folders of the listing before
   * stay until the next one, for readers who have begun.
   */
  async list (skills: readonly PublishedSkill[], state?: PublishedState): Promise<void> {
    const before = this.#listed
    const listed = new Map(skills.map(({ name, digest }) => [name, digest]))
    const text = `${JSON.stringify({ version: 1, skills: Object.fromEntries(listed), state })}\n`
    const temporary = join(this.#tmp, LISTING_FILE)
    await writeFile(temporary, text, { flush: true })
    await rename(temporary, join(this.#folder, LISTING_FILE))
    this.#written = 0
    this.#take(text, state, listed)
    await this.#sweep([...listed.values(), ...before.values()])
  }

  #placeOf ({ name, digest }: Pick<PublishedSkill, 'name' | 'digest'>): string {
    return join(this.#skillsFolder, digest, name)
  }

  /** Writes files first and links last, so that nothing is written through a link. */
  async #write (
    staging: string, skills: readonly PublishedSkill[], read: ReadFiles, signal: AbortSignal
  ): Promise<void> {
    const tops = skills.map(({ name, digest }) => join(staging, digest, name))
    const all = skills.flatMap(({ files }, index) =>
      files.map(({ path, entry }) => ({ entry, path: join(tops[index] ?? '', path) })))
    const folders = new Set([...tops, ...all.map(({ path }) => dirname(path))])
    for (const folder of folders) await mkdir(folder, { recursive: true, mode: 0o755 })
    const flush = (this.#written += all.length) <= MAX_FLUSHED_FILES
    await read(all.filter(({ entry }) => entry.kind === 'file'), async ({ path }, bytes) => {
      signal.throwIfAborted()
      await writeFile(path, bytes, { flag: 'wx', mode: 0o644, flush })
    })
    for (const { entry, path } of all) if (entry.kind === 'link') await symlink(entry.target ?? '', path)
    for (const { digest } of skills) await rename(join(staging, digest), join(this.#skillsFolder, digest))
  }

  /** Removes the folders of other digests. Each is moved first: half a folder would be taken for a complete one. */
  async #sweep (kept: Iterable<string>): Promise<void> {
    const all = new Set(kept)
    for (const name of await readdir(this.#skillsFolder)) {
      if (all.has(name)) continue
      const gone = join(this.#tmp, name)
      // A folder that cannot be removed now is removed another time.
      await rename(join(this.#skillsFolder, name), gone).then(() => rm(gone, { recursive: true })).catch(() => {})
    }
  }

  #take (text: string, state: PublishedState | undefined, listed: ReadonlyMap<string, string>): void {
    this.#text = text
    this.state = state
    this.#listed = listed
    this.isInherited = false
    this.#list(listed)
  }

  /** Serves these folders from now on. */
  #list (listed: Iterable<readonly [name: string, digest: string]>): void {
    this.folders = new Map(Array.from(listed, ([name, digest]): [string, ListedFolder] => {
      const path = this.#placeOf({ name, digest })
      return [name, { path, realPath: path }]
    }))
    this.emit('changed')
  }

  async #makeFolders (): Promise<void> {
    for (const folder of [this.#tmp, this.#skillsFolder]) await mkdir(folder, { recursive: true, mode: 0o700 })
  }
}
