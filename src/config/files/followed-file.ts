import { EventEmitter } from 'node:events'
import { stat } from 'node:fs/promises'
import { sha256 } from '../../core/shared/digest.ts'
import { ConfigError } from '../setting.ts'
import { readTextFile } from './yaml-file.ts'

/** Pause between two looks at the disk, in milliseconds. A file is read once two looks in a row saw it the same. */
const CHECK_MS = 400

/** A file that an operator edits, for code that reports its changes. */
export interface FollowedPolicy {
  readonly path: string
  /** `sha256:<hex>` of the text in force. */
  readonly digest: string
  on (event: 'changed', listener: () => void): unknown
  on (event: 'failed', listener: (error: ConfigError | undefined) => void): unknown
  /** Reads the file again now. */
  reload (): Promise<void>
}

/**
 * Makes a value of the text of a file.
 * @param reads reports another file that the value is made from, with its text; an empty one when it cannot be read
 * @throws ConfigError for a text that cannot be used
 */
type ParseFile<Value> = (text: string, reads: (path: string, text: string) => void) => Value | Promise<Value>

interface Content<Value> {
  readonly value: Value
  readonly digest: string
  /** Other files that the value was made from, with their texts. */
  readonly named: ReadonlyMap<string, string>
}

/**
 * A file that is read again within two seconds after a change. While it cannot be used, the last good value stays in force.
 * Files that its text names, such as keys, are followed too. What a path leads to is compared: links that are replaced
 * (Kubernetes' `..data`), files that were deleted and come back, and network disks are all seen, which events do not promise.
 *
 * Events: `changed` with each new value, once it is in force; `failed` with the reason, once for each, and with undefined
 * when the file can be used again.
 */
export class FollowedFile<Value> extends EventEmitter<{ changed: [Value], failed: [ConfigError | undefined] }> {
  readonly path: string
  readonly #parse: ParseFile<Value>
  #content: Content<Value>
  #error: ConfigError | undefined
  #paths: readonly string[]
  /** How the files looked before they were read last, and at the last look. */
  #read = ''
  #seen = ''
  #timer: NodeJS.Timeout | undefined
  /** Whether a read is running, and whether another one has to follow. */
  #reading: Promise<void> | undefined
  #isClosed = false

  private constructor (path: string, parse: ParseFile<Value>, content: Content<Value>) {
    super()
    this.path = path
    this.#parse = parse
    this.#content = content
    this.#paths = [path, ...content.named.keys()]
    this.#lookLater()
  }

  /** @throws ConfigError when the file cannot be used now */
  static async open<Value> (path: string, parse: ParseFile<Value>): Promise<FollowedFile<Value>> {
    return new FollowedFile(path, parse, await readContent(path, parse, () => {}))
  }

  /** The last good one. */
  get value (): Value {
    return this.#content.value
  }

  get digest (): string {
    return this.#content.digest
  }

  /**
   * What /readyz says while the file cannot be used. The reason may quote the file, so the log alone has it.
   * @param name of the file, such as `the lock`
   */
  remark (name: string): string | undefined {
    return this.#error && `${name} cannot be used as it is, so the last good one stays in force; the log says why`
  }

  /** Reads the file again now. Resolves when its content is in force, or its problem was reported. */
  async reload (): Promise<void> {
    await this.#reading
    this.#reading ??= this.#readNow().finally(() => { this.#reading = undefined })
    await this.#reading
  }

  close (): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.removeAllListeners()
  }

  #lookLater (): void {
    if (!this.#isClosed) this.#timer = setTimeout(() => { void this.#look().finally(() => { this.#lookLater() }) }, CHECK_MS).unref()
  }

  /** An edit may take several writes, and half of a rule may grant more than the whole one: so the files have to rest. */
  async #look (): Promise<void> {
    const now = await looksOf(this.#paths)
    if (now === this.#seen && now !== this.#read) await this.reload()
    this.#seen = now
  }

  async #readNow (): Promise<void> {
    const looks = await looksOf(this.#paths)
    const named = new Set<string>()
    try {
      const content = await readContent(this.path, this.#parse, (path) => { named.add(path) })
      if (this.#isClosed) return
      const isSame = JSON.stringify([content.digest, ...content.named]) === JSON.stringify([this.digest, ...this.#content.named])
      this.#content = content
      if (this.#error !== undefined) this.emit('failed', this.#error = undefined)
      if (!isSame) this.emit('changed', content.value)
    } catch (error) {
      if (!this.#isClosed) this.#fail(error instanceof ConfigError ? error : new ConfigError(`${this.path}: ${String(error)}`, { cause: error }))
    }
    this.#paths = [this.path, ...named]
    this.#read = looks
  }

  #fail (error: ConfigError): void {
    if (this.#error?.message === error.message) return
    this.#error = error
    this.emit('failed', error)
  }
}

/** What notices a change of one of the files. */
async function looksOf (paths: readonly string[]): Promise<string> {
  return JSON.stringify(await Promise.all(paths.map(async (path) => {
    const looks = await stat(path, { bigint: true }).catch((error: unknown) => String(error))
    return typeof looks === 'string' ? looks : [path, ...[looks.dev, looks.ino, looks.mode, looks.size, looks.mtimeNs, looks.ctimeNs].map(String)]
  })))
}

async function readContent<Value> (path: string, parse: ParseFile<Value>, onNamed: (path: string) => void): Promise<Content<Value>> {
  const text = await readTextFile(path)
  const named = new Map<string, string>()
  const value = await parse(text, (file, content) => {
    onNamed(file)
    named.set(file, content)
  })
  return { value, digest: sha256(text), named }
}
