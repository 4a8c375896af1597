import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, realpath, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ListedFolder, Listing } from '../../core/roots/listing.ts'
import { errorCode } from '../../core/disk/disk.ts'
import type { FoundSkill } from '../../core/layout/layout.ts'
import { isJsonObject } from '../../core/ground/json.ts'
import { Signal } from '../../core/ground/signal.ts'
import { isSafeName } from '../../core/ground/skill-name.ts'
import { compareCodePoints } from '../../core/ground/text.ts'
import { MAX_FILE_BYTES, MAX_NAME_BYTES, MAX_PUBLISHED_BYTES } from './limits.ts'
import { readJson, replaceFile } from './state-folder.ts'
import { SourceError } from '../source-error.ts'
import { quotePath, type SourceEntry, type SourceTree } from './source-tree.ts'

/**
 * Names the skills of what was published last, and their state. It is only ever replaced, by a rename: of two files, a process that
 * is killed could leave those of two states.
 */
const LISTING_FILE = 'skills.json'

/** Of what a link says. */
const MAX_LINK_BYTES = 4_095

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

export interface PublishOptions {
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
  readonly approve?: ((folders: ReadonlyMap<string, string>, place: string) => Promise<void>) | undefined
}

export interface PublishedChange {
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
  readonly #retiredAt = new Map<string, number>()
  /** Digests by name. */
  #listed: ReadonlyMap<string, string> = new Map()
  /** Bytes of each skill, by name; as far as this process has published them. */
  #sizes: ReadonlyMap<string, number> = new Map()
  #folders: ReadonlyMap<string, ListedFolder> | undefined
  #realFolder = ''
  #sweep: NodeJS.Timeout | undefined

  constructor (folder: string) {
    this.#folder = folder
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

  /** Makes the folders, and removes what a process that was killed left behind. */
  async open (): Promise<PublishedState | undefined> {
    await rm(this.tmp, { recursive: true, force: true })
    for (const folder of [this.tmp, this.#skillsFolder]) await mkdir(folder, { recursive: true, mode: 0o700 })
    this.#realFolder = await realpath(this.#skillsFolder)
    const listing = await readJson(join(this.#folder, LISTING_FILE))
    if (!isJsonObject(listing) || !isJsonObject(listing.skills)) return undefined
    const listed = Object.entries(listing.skills).filter((entry): entry is [string, string] => isSafeName(entry[0]) && typeof entry[1] === 'string' && DIGEST.test(entry[1]))
    const there = new Set(await readdir(this.#skillsFolder))
    const present = listed.filter(([, digest]) => there.has(digest))
    this.#list(new Map(present))
    await this.#removeUnlisted()
    const { state } = listing
    if (!isState(state)) return undefined
    // What somebody has removed is fetched again, and not taken for what the source has.
    return present.length === listed.length ? state : { ...state, memory: {} }
  }

  async publish (tree: SourceTree, found: readonly FoundSkill[], { only, state, prefix, signal, where, confirm, approve }: PublishOptions): Promise<PublishedChange> {
    const before = this.#listed
    const listed = only === undefined ? new Map<string, string>() : new Map(before)
    const sizes = only === undefined ? new Map<string, number>() : new Map(this.#sizes)
    const missing: Array<{ readonly digest: string, readonly name: string, readonly files: SkillFiles }> = []
    const there = only === undefined ? new Set(await readdir(this.#skillsFolder)) : undefined
    for (const { name: found_, path } of found) {
      if (only?.has(found_) === false) continue
      const name = prefix + found_
      const files = tree.below(path).sort((a, b) => compareCodePoints(a.path, b.path))
      const tooLarge = files.find(({ entry }) => entry.size > MAX_FILE_BYTES)
      const unwritable = files.find(isUnwritable)
      if (unwritable !== undefined) throw new SourceError('refused_tree', `${where} is refused: no disk can hold ${quotePath(unwritable.path)} in the skill ${quotePath(path)}`)
      if (tooLarge !== undefined) throw new SourceError('too_large', `${where} is refused: ${quotePath(tooLarge.entry.path)} is larger than ${MAX_FILE_BYTES} bytes`)
      sizes.set(name, files.reduce((sum, { entry }) => sum + entry.size, 0))
      const digest = digestOf(name, files)
      listed.set(name, digest)
      this.#retiredAt.delete(digest)
      if (!(there?.has(digest) ?? existsSync(join(this.#skillsFolder, digest)))) missing.push({ digest, name, files })
    }
    if ([...sizes.values()].reduce((sum, size) => sum + size, 0) > MAX_PUBLISHED_BYTES) throw new SourceError('too_large', `${where} is refused: its skills are larger than ${MAX_PUBLISHED_BYTES} bytes together`)
    await this.#write(tree, missing, signal)
    await confirm?.()
    const others: Array<readonly [name: string, digest: string]> = []
    for (const [name, digest] of listed) if (before.get(name) !== digest) others.push([name, digest])
    await approve?.(new Map(others.map(([name, digest]) => [name, join(this.#realFolder, digest, name)])), this.#realFolder)
    signal.throwIfAborted()
    await replaceFile(join(this.#folder, LISTING_FILE), `${JSON.stringify({ skills: Object.fromEntries(listed), state })}\n`, this.tmp)
    this.#sizes = sizes
    this.#list(listed)
    this.#retire(before)
    const changed = others.filter(([name]) => before.has(name)).length
    const added = others.length - changed
    return { added, changed, removed: before.size + added - listed.size }
  }

  close (): void {
    clearTimeout(this.#sweep)
  }

  get #skillsFolder (): string {
    return join(this.#folder, 'skills')
  }

  /** Files first and links afterwards: nothing is ever written through a link. */
  async #write (tree: SourceTree, skills: ReadonlyArray<{ readonly digest: string, readonly name: string, readonly files: SkillFiles }>, signal: AbortSignal): Promise<void> {
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

  #retire (before: ReadonlyMap<string, string>): void {
    const now = Date.now()
    for (const [name, digest] of before) {
      if (this.#listed.get(name) !== digest) this.#retiredAt.set(digest, now)
    }
    if (this.#retiredAt.size > 0) this.#sweep ??= setTimeout(() => { void this.#sweepRetired() }, RETIRED_MS).unref()
  }

  async #sweepRetired (): Promise<void> {
    this.#sweep = undefined
    for (const [path, at] of this.#retiredAt) {
      if (Date.now() - at < RETIRED_MS) continue
      this.#retiredAt.delete(path)
      await rm(join(this.#skillsFolder, path), { recursive: true, force: true }).catch(() => {})
    }
    if (this.#retiredAt.size > 0) this.#sweep = setTimeout(() => { void this.#sweepRetired() }, RETIRED_MS).unref()
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

  async #removeUnlisted (): Promise<void> {
    const listed = new Set(this.#listed.values())
    for (const name of await readdir(this.#skillsFolder)) {
      if (!listed.has(name)) await rm(join(this.#skillsFolder, name), { recursive: true, force: true })
    }
  }
}

const DIGEST = /^[\da-f]{40}$/

type SkillFiles = ReadonlyArray<{ readonly path: string, readonly entry: SourceEntry }>

/** Whether a name is longer than file systems have them, or a link leads to what is no path. */
function isUnwritable ({ path, entry: { kind, target = '' } }: SkillFiles[number]): boolean {
  if (path.split('/').some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) return true
  return kind === 'link' && (target === '' || target.includes('\0') || Buffer.byteLength(target) > MAX_LINK_BYTES)
}

/** Names a folder by its content, and by the skill's name: two skills of one content are two folders. */
function digestOf (name: string, files: SkillFiles): string {
  const digest = createHash('sha256').update(name)
  for (const { path, entry } of files) if (entry.kind !== 'submodule') digest.update(`\0${entry.kind}\0${path}\0${entry.kind === 'link' ? entry.target ?? '' : entry.id}`)
  return digest.digest('hex').slice(0, 40)
}

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
