import { createNetworkDisk, type Disk } from '../core/disk/disk.ts'
import { errorCode } from '../core/shared/system-errors.ts'
import { isTrustworthy, stateId } from '../core/disk/signature.ts'
import { sha256 } from '../core/shared/digest.ts'
import { Signal } from '../core/shared/signal.ts'
import { ConfigError } from './setting.ts'
import { readTextFile } from './yaml-file.ts'

/** Pause between two comparisons with the disk, in milliseconds: a change is in force after at most two of them. */
const CHECK_MS = 250

/** An operator's file, for code that only reports its changes. */
export interface FollowedPolicy {
  readonly path: string
  /** `sha256:<hex>` of the text in force. */
  readonly digest: string
  readonly changed: { subscribe (listener: () => void): () => void }
  readonly failed: Pick<Signal<ConfigError | undefined>, 'subscribe'>
}

/**
 * Makes a value of the text of a file.
 * @param reads reports another file that the value is made from, with its text; an empty one when it cannot be read
 * @throws ConfigError for a text that cannot be used
 */
type ParseFile<Value> = (text: string, reads: (path: string, text: string) => void) => Value

/**
 * A file of an operator's that is read again within a second after its last change. While the file cannot be used, the last
 * good value stays. It is compared by its timestamps at intervals, as links to it may be exchanged (Kubernetes' `..data`)
 * and network disks send no events. Files that its text names, such as keys, are followed with it.
 */
export class FollowedFile<Value> implements FollowedPolicy {
  /** Tells of each new value, once it is in place. */
  readonly changed = new Signal<Value>()
  /** Tells why the file cannot be used, once for each reason, and of its mending with undefined. */
  readonly failed = new Signal<ConfigError | undefined>()
  readonly path: string
  readonly #parse: ParseFile<Value>
  readonly #disk: Pick<Disk, 'stat'>
  readonly #timer: NodeJS.Timeout
  #value: Value
  #error: ConfigError | undefined
  /** What the value is made from. */
  #content = ''
  #digest = ''
  /** Paths of other files that the text names. */
  #named: ReadonlySet<string> = new Set()
  /** The fingerprint of the state that was read, unless the next edit may leave it as it is; and that of the last comparison. */
  #read: string | undefined
  #last: string | undefined
  #isChecking = false

  private constructor (path: string, parse: ParseFile<Value>, text: string, checkMs: number, disk: Pick<Disk, 'stat'>) {
    this.path = path
    this.#parse = parse
    this.#disk = disk
    this.#value = this.#parseText(text)
    this.#timer = setInterval(() => { void this.#check() }, checkMs).unref()
  }

  /**
   * @param parse throws ConfigError for a text that cannot be used
   * @throws ConfigError when the file cannot be used now
   */
  static async open<Value> (path: string, parse: ParseFile<Value>, checkMs: number = CHECK_MS, disk: Pick<Disk, 'stat'> = createNetworkDisk()): Promise<FollowedFile<Value>> {
    return new FollowedFile(path, parse, await readTextFile(path), checkMs, disk)
  }

  /** The last good one. */
  get value (): Value {
    return this.#value
  }

  get digest (): string {
    return this.#digest
  }

  /**
   * What /readyz says while the file cannot be used. The reason may quote the file, so the log alone has it.
   * @param name of the file, such as `the lock`
   */
  remark (name: string): string | undefined {
    return this.#error === undefined ? undefined : `${name} cannot be used as it is, so the last good one stays in force; the log says why`
  }

  close (): void {
    clearInterval(this.#timer)
    this.changed.clear()
    this.failed.clear()
  }

  async #check (): Promise<void> {
    if (this.#isChecking) return
    this.#isChecking = true
    try {
      const files = await Promise.all([this.path, ...this.#named].map((path) => this.#stateOf(path)))
      const now = files.map(({ id }) => id).join('\n')
      // A file that is being written is read when it has been still from one comparison to the next.
      const isStill = now === this.#last
      this.#last = now
      if (!isStill || now === this.#read) return
      // One that is away may come back as it was.
      this.#read = undefined
      const text = await readTextFile(this.path)
      this.#read = files.every(({ isOld }) => isOld) ? now : undefined
      this.#use(text)
    } catch (error) {
      this.#fail(error instanceof ConfigError ? error : new ConfigError(`${this.path}: ${String(error)}`, { cause: error }))
    } finally {
      this.#isChecking = false
    }
  }

  /** `id` stays equal while the file is unchanged. While it is not old, the next edit may leave `id` as it is. */
  async #stateOf (path: string): Promise<{ readonly id: string, readonly isOld: boolean }> {
    const now = Date.now()
    try {
      const stats = await this.#disk.stat(path)
      if (stats !== undefined) return { id: stateId(stats), isOld: isTrustworthy(stats, now) }
      return { id: 'gone', isOld: true }
    } catch (error) {
      return { id: `gone ${errorCode(error)}`, isOld: true }
    }
  }

  #use (text: string): void {
    const before = this.#content
    const value = this.#parseText(text)
    if (this.#content === before && this.#error === undefined) return
    this.#value = value
    if (this.#error !== undefined) {
      this.#error = undefined
      this.failed.emit(undefined)
    }
    this.changed.emit(this.#value)
  }

  #parseText (text: string): Value {
    const named = new Map<string, string>()
    try {
      const value = this.#parse(text, (path, text) => { named.set(path, text) })
      this.#content = JSON.stringify([text, ...named])
      this.#digest = sha256(text)
      return value
    } finally {
      this.#named = new Set(named.keys())
    }
  }

  #fail (error: ConfigError): void {
    if (this.#error?.message === error.message) return
    this.#error = error
    this.failed.emit(error)
  }
}
