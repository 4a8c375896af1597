import { closeSync, constants, fstatSync, openSync, readlinkSync } from 'node:fs'
import { join, parse } from 'node:path'
import { MAX_ATTEMPTS } from '../../shared/limits.ts'
import { descriptorPath, O_PATH } from '../disk.ts'
import { errorCode, systemError } from '../../shared/system-errors.ts'
import { type FollowedPath, type FollowOptions, followPath, type FoundEntry } from './trace-path.ts'

/** What a path led to, by its descriptor, whatever is at that path by now. */
export interface HeldEntry {
  /** Its real path when it was opened. */
  readonly path: string
  /** Opened with O_PATH. */
  readonly descriptor: number
  readonly isFolder: boolean
  /** Text of a link. */
  readonly target: string | undefined
}

/**
 * Follows one path with all folders on its way open. A check of a path says nothing about a call with that path: a link may be in the
 * place of a folder by then, and the call waits for the disk that it leads to. Nothing takes the place of an open folder.
 */
export class HeldPath {
  readonly #path: string
  readonly #options: FollowOptions
  readonly #way: HeldEntry[] = []
  #error: unknown

  private constructor (path: string, options: FollowOptions) {
    this.#path = path
    this.#options = options
  }

  /** @param isRemote as `followPath` takes it: for a call to what must not be touched, nothing is open */
  static follow<T> (path: string, isRemote: (path: string) => boolean, options: FollowOptions, use: (followed: FollowedPath, held: HeldPath) => T): T {
    const held = new HeldPath(path, options)
    try {
      return use(followPath(path, isRemote, { ...options, lookUp: (folder, name) => held.#lookUp(folder, name) }), held)
    } finally {
      held.#leave('')
    }
  }

  /**
   * What is at the end.
   * @throws the error of the operating system that a call with this path gives
   */
  end ({ entry, rest }: FollowedPath): HeldEntry {
    if (this.#error !== undefined) throw systemError(errorCode(this.#error), this.#path)
    const end = this.#enter(entry)
    // More links than a path may have.
    if (end.target !== undefined && (this.#options.followsLast !== false || rest.length > 0)) throw systemError('ELOOP', this.#path)
    if (rest.length > 0) throw systemError('ENOTDIR', this.#path)
    return end
  }

  #lookUp (folder: string, name: string): FoundEntry {
    try {
      const { descriptor } = this.#enter(folder)
      const entry = holdEntry(`${descriptorPath(descriptor)}/${name}`, join(folder, name))
      this.#way.push(entry)
      return entry
    } catch (error) {
      this.#error = error
      return { isFolder: false }
    }
  }

  /** Leaves what is not on the way to an entry that was found before. */
  #enter (path: string): HeldEntry {
    this.#leave(path)
    const { root } = parse(path)
    if (this.#way.length === 0) this.#way.push(holdEntry(root, root))
    const entry = this.#way.at(-1)
    if (entry?.path !== path) throw new Error('the path was not followed in steps')
    return entry
  }

  #leave (path: string): void {
    for (let last = this.#way.at(-1); last !== undefined && last.path !== path; last = this.#way.at(-1)) {
      closeSync(last.descriptor)
      this.#way.pop()
    }
  }
}

/** @param asked the path for calls */
function holdEntry (asked: string, path: string): HeldEntry {
  for (let attempt = 1; ; attempt++) {
    const descriptor = openSync(asked, O_PATH | constants.O_NOFOLLOW)
    try {
      const stats = fstatSync(descriptor)
      return { path, descriptor, isFolder: stats.isDirectory(), target: stats.isSymbolicLink() ? readlinkSync(asked) : undefined }
    } catch (error) {
      closeSync(descriptor)
      // Something else has taken the place of the link.
      if (errorCode(error) !== 'EINVAL' || attempt === MAX_ATTEMPTS) throw error
    }
  }
}
