import { basename } from 'node:path'
import { createNetworkDisk, type Disk, isOnNetwork, localDisk } from '../read/disk.ts'
import { IGNORE_FILE } from '../read/ignore-file.ts'
import { isSameState, stampAt } from '../read/file-stamp.ts'
import { coalesce } from '../shared/async.ts'
import { folderError, type SkillError } from '../shared/errors.ts'
import { pathBelow } from '../shared/paths.ts'
import type { SkillType } from '../shared/skill.ts'
import { errorCode } from '../shared/system-errors.ts'
import {
  type Listing, type ListingFailure, listRoot, type RootFolder, type RootListing, type SkillFolder
} from './list-root.ts'

/** A folder of skills as its owner gives it. */
export interface RootOptions {
  /** Absolute; it need not exist. */
  readonly path: string
  /** What settings and reports call it. Default: the last part of the path. */
  readonly name?: string
  /** The skills, instead of the folders in it. */
  readonly listed?: Listing
  /** What the listing has in front of the name of each skill. */
  readonly prefix?: string
  /** Default: of a project. */
  readonly type?: SkillType
}

/** What is known of a root: for /readyz and the log. */
export interface RootStatus {
  readonly name: string
  readonly type: SkillType
  readonly state: 'ok' | ListingFailure['state']
  readonly skills: number
  /** Entries that look like skills and are none: the log names them. */
  readonly skipped: number
}

/** Why nothing of a root is listed, as the end of a sentence about its folder. */
export const ROOT_PROBLEMS = {
  waiting: 'is not fetched yet',
  missing: 'is missing, or is a file',
  unreadable: 'may not be read',
  failed: 'cannot be listed'
} as const satisfies Record<ListingFailure['state'], string>

const NO_FOLDERS: ReadonlyMap<string, SkillFolder> = new Map()

interface RootParts {
  readonly linkTargets?: readonly string[] | undefined
  /** Default: the one that fits the file system of the root. */
  readonly disk?: Disk | undefined
  /** Called after each listing. */
  readonly onListed: (root: Root, before: RootListing | undefined) => void
}

let count = 0

/** A configured folder of skills, with its last good listing. */
export class Root implements RootFolder {
  readonly id = count++
  /** As it was given. */
  readonly options: string | RootOptions
  readonly name: string
  readonly path: string
  readonly type: SkillType
  /** What lists its skills, now or at another time. */
  readonly source: Listing | undefined
  readonly prefix: string
  readonly linkTargets: readonly string[]
  /** Lists the folder again. A call during a run waits for one more run. */
  readonly list = coalesce(() => this.#list())
  disk: Disk
  /** The last good one. */
  listing: RootListing | undefined
  /** Why the last listing failed, if it did. */
  failure: ListingFailure | undefined
  readonly #parts: RootParts

  constructor (options: string | RootOptions, parts: RootParts) {
    const given = typeof options === 'string' ? { path: options } : options
    const { path, name = basename(path), listed, prefix = '', type = 'project' } = given
    this.options = options
    this.name = name
    this.path = path
    this.type = type
    this.source = listed
    this.prefix = prefix
    this.linkTargets = parts.linkTargets ?? []
    this.#parts = parts
    this.disk = parts.disk ?? localDisk
    this.#chooseDisk(path)
  }

  /** Undefined while the root lists its own folder. */
  get listed (): Listing | undefined {
    return this.source?.isDirect === true ? undefined : this.source
  }

  /** Whether it lies on a network disk: its events are not to be relied on, and it may hang. */
  get isNetwork (): boolean {
    return this.#parts.disk === undefined && this.disk !== localDisk
  }

  /** Its skills by name, of the last good listing. */
  get folders (): ReadonlyMap<string, SkillFolder> {
    return this.listing?.folders ?? NO_FOLDERS
  }

  /** Code of what keeps the root from being listed, without paths; undefined when nothing does. */
  get failureCode (): string | undefined {
    return this.failure?.state === 'failed' ? errorCode(this.failure.cause) : undefined
  }

  get status (): RootStatus {
    return {
      name: this.name,
      type: this.type,
      state: this.failure?.state ?? 'ok',
      skills: this.folders.size,
      skipped: this.listed?.skipped ?? this.listing?.skipped.length ?? 0
    }
  }

  get unavailable (): SkillError | undefined {
    if (this.listing !== undefined) return undefined
    switch (this.failure?.state) {
      case 'waiting': return folderError.notFetched(this.name)
      case 'unreadable': return folderError.permissionDenied()
      default: return folderError.notFound(this.path)
    }
  }

  /** Lists the root again if one `stat` differs, for one name or for all. Never throws: the last listing stays. */
  async sync (name?: string): Promise<void> {
    if (this.#mayHaveMoved(name) || !await this.#isCurrent()) await this.list()
  }

  /** What a link leads to may come or go without a change to the root. The link of a listed skill is compared later. */
  #mayHaveMoved (name: string | undefined): boolean {
    const { links } = this.listing ?? {}
    return name === undefined ? (links?.size ?? 0) > 0 : links?.has(name) === true && !this.folders.has(name)
  }

  async #isCurrent (): Promise<boolean> {
    const listing = this.listing
    if (listing === undefined || this.failure !== undefined) return false
    if (this.listed !== undefined || listing.listed !== undefined) return listing.listed === this.listed?.folders
    if (!listing.isSettled) return false
    try {
      const now = await stampAt(this.disk, this.path)
      if (now === undefined || !isSameState(now, listing.stamp)) return false
      if (listing.ignoreFile === undefined) return true
      const rules = await stampAt(this.disk, pathBelow(listing.realPath, IGNORE_FILE))
      return isSameState(rules, listing.ignoreFile.stamp)
    } catch {
      return false
    }
  }

  async #list (): Promise<void> {
    const before = this.listing
    const found = await listRoot(this.disk, this, before)
    if ('state' in found) {
      this.failure = found
      // A disk that fails does not say that the skills are gone.
      if (found.state !== 'failed') this.listing = undefined
    } else {
      this.failure = undefined
      this.listing = found
      // Something may have been mounted.
      this.#chooseDisk(found.realPath)
    }
    this.#parts.onListed(this, before)
  }

  #chooseDisk (path: string): void {
    if (this.#parts.disk !== undefined || isOnNetwork(path) === this.isNetwork) return
    this.disk = this.isNetwork ? localDisk : createNetworkDisk()
  }
}
