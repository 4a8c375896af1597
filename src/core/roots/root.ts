import { basename } from 'node:path'
import { type Disk, diskOf, localDisk } from '../read/disk.ts'
import { IGNORE_FILE } from '../read/ignore-file.ts'
import { stampAt } from '../read/file-stamp.ts'
import { coalesce, yieldIfNeeded } from '../shared/async.ts'
import { folderError, type SkillError } from '../shared/errors.ts'
import { pathBelow } from '../shared/paths.ts'
import type { SkillType } from '../shared/skill.ts'
import { errorCode } from '../shared/system-errors.ts'
import {
  type Listing, type ListingFailure, listRoot, type RootFolder, type RootListing, type SkillFolder
} from './list-root.ts'

export interface RootOptions {
  /** Absolute path. The folder need not exist. */
  readonly path: string
  /** Name in settings and reports. Default: the last part of the path. */
  readonly name?: string
  /** Lists the skills. Default: they are the folders in the root. */
  readonly listed?: Listing
  /** Stands in front of each name in the listing. */
  readonly prefix?: string
  /** Default: of a project. */
  readonly type?: SkillType
}

/** For /readyz and the log. */
export interface RootStatus {
  readonly name: string
  readonly type: SkillType
  readonly state: 'ok' | 'indexing' | ListingFailure['state']
  readonly skills: number
  /** Entries that could be skills and are none: the log names them. */
  readonly skipped: number
}

/** The last good listing of a root, and the failure of the last attempt. Both are undefined before the first. */
export type RootState = Pick<Root, 'listing' | 'failure'>

/** Returns the error code of a failed listing; undefined if it did not fail. */
export function failureCodeOf ({ failure }: RootState): string | undefined {
  return failure?.state === 'failed' ? errorCode(failure.cause) : undefined
}

/** Problems of a root, as the end of a sentence about its folder. */
export const ROOT_PROBLEMS = {
  indexing: 'is being read for the first time',
  waiting: 'has not been fetched yet',
  missing: 'is missing, or is a file',
  unreadable: 'cannot be read: permission denied',
  failed: 'cannot be listed'
} as const satisfies Record<Exclude<RootStatus['state'], 'ok'>, string>

const NO_FOLDERS: ReadonlyMap<string, SkillFolder> = new Map()

interface RootParts {
  readonly linkTargets?: readonly string[] | undefined
  /** Default: the one that fits the file system of the root. */
  readonly disk?: Disk | undefined
  readonly onListed: (root: Root, before: RootState) => void
}

let count = 0

/** A configured folder of skills, with its last good listing. */
export class Root implements RootFolder {
  readonly id = count++
  readonly options: string | RootOptions
  readonly name: string
  readonly path: string
  readonly type: SkillType
  /** May list the skills, unless it is direct. */
  readonly source: Listing | undefined
  readonly prefix: string
  readonly linkTargets: readonly string[]
  /** Lists the folder again. Calls during a run share one further run. */
  readonly list = coalesce(() => this.#list())
  disk: Disk
  /** Whether all its skills have been read once. */
  isIndexed = false
  /** Names of listed skills whose folders have not been read since they appeared. */
  readonly unread = new Set<string>()
  listing: RootListing | undefined
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
    this.disk = parts.disk ?? diskOf(path, ...this.linkTargets)
  }

  /** The `Listing` in use; undefined while the root lists its own folder. */
  get listed (): Listing | undefined {
    return this.source?.isDirect === true ? undefined : this.source
  }

  /** Whether it lies on a network disk, which may hang and misses events. */
  get isNetwork (): boolean {
    return this.#parts.disk === undefined && this.disk !== localDisk
  }

  get folders (): ReadonlyMap<string, SkillFolder> {
    return this.listing?.folders ?? NO_FOLDERS
  }

  get status (): RootStatus {
    return {
      name: this.name,
      type: this.type,
      state: this.failure?.state ?? (this.isIndexed ? 'ok' : 'indexing'),
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

  /**
   * Lists the root again if its stamp has changed, or that of a link: the link with this name, or any link without a
   * name. Never throws. If the disk fails, the last listing stays.
   */
  async sync (name?: string): Promise<void> {
    if (!await this.#isCurrent(name).catch(() => false)) await this.list()
  }

  async #isCurrent (name: string | undefined): Promise<boolean> {
    const { listing, disk } = this
    if (listing === undefined || this.failure !== undefined) return false
    if (this.listed !== undefined || listing.listed !== undefined) {
      // A root that has just got a `Listing` must be listed again, even if that has no folders yet.
      return listing.listed !== undefined && listing.listed === this.listed?.folders
    }
    if (!listing.isSettled || await stampAt(disk, this.path) !== listing.stamp) return false
    const { realPath, ignoreFile, links } = listing
    const rulesPath = pathBelow(realPath, IGNORE_FILE)
    if (ignoreFile !== undefined && await stampAt(disk, rulesPath) !== ignoreFile.stamp) return false
    // The link of a listed skill is compared when the skill is read.
    const isAsked = name === undefined || (links.has(name) && !this.folders.has(name))
    for (const link of !isAsked ? [] : name === undefined ? links.keys() : [name]) {
      if (await stampAt(disk, pathBelow(realPath, link)) !== links.get(link)) return false
      await yieldIfNeeded()
    }
    return true
  }

  async #list (): Promise<void> {
    const before = { listing: this.listing, failure: this.failure }
    const found = await listRoot(this.disk, this, before.listing)
    if ('state' in found) {
      this.failure = found
      // A disk that fails does not say that the skills are gone.
      if (found.state !== 'failed') this.listing = undefined
    } else {
      this.failure = undefined
      this.listing = found
      // A disk may have been mounted meanwhile.
      if (this.#parts.disk === undefined) this.disk = diskOf(found.realPath, ...this.linkTargets)
    }
    this.#parts.onListed(this, before)
  }
}
