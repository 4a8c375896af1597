import type { Manifest } from '../../shared/skill.ts'

/** How long a revision stays readable after the skill has changed, in milliseconds, and the bytes of all kept files together. */
const KEPT_REVISION_MS = 600_000
const KEPT_REVISION_BYTES = 64 * 1_048_576

export interface KeptRevisionsOptions {
  /** How long a revision stays readable after the skill has moved on, in milliseconds; 0 keeps none. */
  readonly keepMs: number
  /** Bytes of all kept files together; equal files count once. */
  readonly maxBytes: number
}

/** Bytes of files by digest. */
export type Contents = ReadonlyMap<string, Buffer>

interface Entry {
  readonly manifest: Manifest
  readonly onGone: () => void
  /** Runs once the skill has moved on. */
  timer: NodeJS.Timeout | undefined
}

/** Counted beside the bytes, so that thousands of small revisions are bounded too. */
const WEIGHT_PER_FILE = 256
const WEIGHT_PER_REVISION = 1_024

/**
 * Owns the bytes of the kept revisions of all roots, their times and their limit. Two revisions of a skill differ in few files, so
 * equal files are in memory once and count once. Bounded by KEPT_REVISION_BYTES, unless an operator says otherwise; the oldest go first.
 */
export class RevisionMemory {
  readonly keepMs: number
  readonly maxBytes: number
  /** The oldest first. */
  readonly #entries = new Map<string, Entry>()
  /** By digest, with the number of revisions that have such a file. */
  readonly #contents = new Map<string, { readonly bytes: Buffer, uses: number }>()
  #weight = 0
  #numbers = 0

  constructor ({ keepMs = KEPT_REVISION_MS, maxBytes = KEPT_REVISION_BYTES }: Partial<KeptRevisionsOptions> = {}) {
    this.keepMs = maxBytes > 0 ? keepMs : 0
    this.maxBytes = maxBytes
  }

  /** A number that is higher than all before. */
  takeNumber (): number {
    return this.#numbers++
  }

  /** Bytes in use, with what each file and revision takes beside them. */
  get weight (): number {
    return this.#weight
  }

  /** Whether there is room for a revision, if all others make room. */
  fits ({ files }: Manifest): boolean {
    const sizes = new Map(files.map(({ digest, size_bytes: size }) => [digest, size]))
    return [...sizes.values()].reduce((sum, size) => sum + size, weightBesideContents(files)) <= this.maxBytes
  }

  /** Whether there is room without that: equal files of other revisions are there already. */
  hasRoomFor ({ files }: Manifest): boolean {
    const sizes = new Map(files.flatMap(({ digest, size_bytes: size }) => this.#contents.has(digest) ? [] : [[digest, size] as const]))
    return [...sizes.values()].reduce((sum, size) => sum + size, this.#weight + weightBesideContents(files)) <= this.maxBytes
  }

  /**
   * Keeps a revision without an end, as the newest; others make room.
   * @param onGone called when it goes, whatever the reason
   * @returns its bytes; undefined when it does not fit
   */
  add (key: string, manifest: Manifest, contents: Contents, onGone: () => void): Contents | undefined {
    this.delete(key)
    if (!this.fits(manifest)) return undefined
    const shared = new Map(Array.from(contents, ([digest, bytes]) => [digest, this.#use(digest, bytes)] as const))
    this.#weight += weightBesideContents(manifest.files)
    this.#entries.set(key, { manifest, onGone, timer: undefined })
    for (const oldest of this.#entries.keys()) {
      if (this.#weight <= this.maxBytes) break
      this.delete(oldest)
    }
    return shared
  }

  /** Makes a revision the newest, without an end. */
  renew (key: string): void {
    this.stay(key)
    this.#moveToEnd(key)
  }

  /** Ends the time of a revision that the skill has again. */
  stay (key: string): void {
    const entry = this.#entries.get(key)
    if (entry?.timer === undefined) return
    clearTimeout(entry.timer)
    entry.timer = undefined
  }

  /** From now on the time of a revision runs, if it did not before. It goes after those that can still be read from the disk. */
  expire (key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.timer !== undefined) return
    entry.timer = setTimeout(() => { this.delete(key) }, this.keepMs).unref()
    this.#moveToEnd(key)
  }

  delete (key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    clearTimeout(entry.timer)
    this.#entries.delete(key)
    this.#weight -= weightBesideContents(entry.manifest.files)
    for (const digest of new Set(entry.manifest.files.map(({ digest }) => digest))) this.#release(digest)
    entry.onGone()
  }

  #moveToEnd (key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#entries.set(key, entry)
  }

  #use (digest: string, bytes: Buffer): Buffer {
    const known = this.#contents.get(digest)
    if (known !== undefined) {
      known.uses++
      return known.bytes
    }
    this.#contents.set(digest, { bytes, uses: 1 })
    this.#weight += bytes.length
    return bytes
  }

  #release (digest: string): void {
    const known = this.#contents.get(digest)
    if (known === undefined || --known.uses > 0) return
    this.#contents.delete(digest)
    this.#weight -= known.bytes.length
  }
}

function weightBesideContents (files: Manifest['files']): number {
  return files.reduce((sum, { path }) => sum + path.length + WEIGHT_PER_FILE, WEIGHT_PER_REVISION)
}
