import { EventEmitter } from 'node:events'
import { unwatchFile, watchFile } from 'node:fs'
import { sha256 } from '../../core/shared/digest.ts'
import { ConfigError } from '../setting.ts'
import { readTextFile } from './yaml-file.ts'

/** Pause between two looks at the disk, and between a change and the reading, in milliseconds. */
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
 * A file that is read again within two seconds after a change, and so are the files that its text names, such as keys.
 * While it cannot be used, the last good value stays in force. `watchFile` compares what a path leads to: it sees links
 * that are replaced (Kubernetes' `..data`), files that were away, and changes on network disks.
 *
 * Events: `changed` with each new value, once it is in force; `failed` with the reason, once for each, and with
 * undefined when the file can be used again.
 */
export class FollowedFile<Value> extends EventEmitter<{ changed: [Value], failed: [ConfigError | undefined] }> {
  readonly path: string
  readonly #parse: ParseFile<Value>
  #content: Content<Value>
  #error: ConfigError | undefined
  #paths: ReadonlySet<string> = new Set()
  #timer: NodeJS.Timeout | undefined
  #reading: Promise<void> | undefined
  #isClosed = false

  private constructor (path: string, parse: ParseFile<Value>, content: Content<Value>) {
    super()
    this.path = path
    this.#parse = parse
    this.#content = content
    this.#watch([path, ...content.named.keys()])
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
    this.#watch([])
    clearTimeout(this.#timer)
    this.removeAllListeners()
  }

  #watch (paths: readonly string[]): void {
    const [old, wanted] = [this.#paths, new Set(paths)]
    this.#paths = wanted
    for (const path of old) if (!wanted.has(path)) unwatchFile(path, this.#readLater)
    for (const path of wanted) {
      if (old.has(path)) continue
      watchFile(path, { interval: CHECK_MS, persistent: false }, this.#readLater)
      // It may have changed between its reading and the first look.
      this.#readLater()
    }
  }

  /** An edit may take several writes, and half of a rule may grant more than the whole one. */
  readonly #readLater = (): void => {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => { void this.reload() }, CHECK_MS).unref()
  }

  async #readNow (): Promise<void> {
    const named = new Set<string>()
    try {
      const content = await readContent(this.path, this.#parse, (path) => { named.add(path) })
      if (this.#isClosed) return
      const { digest, named: texts } = this.#content
      const isSame = JSON.stringify([content.digest, ...content.named]) === JSON.stringify([digest, ...texts])
      this.#content = content
      if (this.#error !== undefined) this.emit('failed', this.#error = undefined)
      if (!isSame) this.emit('changed', content.value)
    } catch (error) {
      if (this.#isClosed) return
      this.#fail(error instanceof ConfigError
        ? error
        : new ConfigError(`${this.path}: ${String(error)}`, { cause: error }))
    }
    this.#watch([this.path, ...named])
  }

  #fail (error: ConfigError): void {
    if (this.#error?.message === error.message) return
    this.#error = error
    this.emit('failed', error)
  }
}

async function readContent<Value> (
  path: string, parse: ParseFile<Value>, onNamed: (path: string) => void
): Promise<Content<Value>> {
  const text = await readTextFile(path)
  const named = new Map<string, string>()
  const value = await parse(text, (file, content) => {
    onNamed(file)
    named.set(file, content)
  })
  return { value, digest: sha256(text), named }
}
