import { EventEmitter } from 'node:events'
import { unwatchFile, watchFile } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { sha256 } from '../../core/shared/digest.ts'
import { ConfigError } from '../setting.ts'
import { readRegularFile } from './files.ts'
import { readTextFile } from './yaml-file.ts'

/** Pause between two looks at the disk, and between a change and the reading, in milliseconds. */
const CHECK_MS = 400

/** Reads a file that the text of another one names. */
export type ReadNamed = (path: string) => Promise<string>

/** @throws ConfigError for a text that cannot be used */
type ParseFile<Value> = (text: string, readNamed: ReadNamed) => Value | Promise<Value>

/** A file that an operator edits, for code that reports its changes. */
export type FollowedPolicy = Pick<FollowedFile<unknown>, 'path' | 'digest' | 'on' | 'reload'>

/**
 * A file that is read again within two seconds after a change of it, or of a file that its text names, such as a key.
 * While it cannot be used, the last good value stays in force. `watchFile` compares what a path leads to: it sees links
 * that are replaced (Kubernetes' `..data`), files that were away, and changes on network disks.
 *
 * Events: `changed` with each new value, once it is in force; `failed` with the reason, once for each, and with
 * undefined when the file can be used again.
 */
export class FollowedFile<Value> extends EventEmitter<{ changed: [Value], failed: [ConfigError | undefined] }> {
  readonly path: string
  readonly #parse: ParseFile<Value>
  #value: Value
  /** The file and those that it names, by path. */
  #texts: ReadonlyMap<string, string>
  #problem: string | undefined
  #watched: ReadonlySet<string> = new Set()
  #timer: NodeJS.Timeout | undefined
  #reading = Promise.resolve()
  #isClosed = false

  private constructor (path: string, parse: ParseFile<Value>, value: Value, texts: ReadonlyMap<string, string>) {
    super()
    this.path = path
    this.#parse = parse
    this.#value = value
    this.#texts = texts
    this.#watch(new Set(texts.keys()))
  }

  /**
   * @param setting that names the file: `PORT or --port`
   * @throws ConfigError when the file cannot be used now
   */
  static async open<Value> (setting: string, path: string, parse: ParseFile<Value>): Promise<FollowedFile<Value>> {
    const texts = new Map<string, string>()
    return new FollowedFile(path, parse, await readValue(path, parse, texts, setting), texts)
  }

  /** The last good one. */
  get value (): Value {
    return this.#value
  }

  /** `sha256:<hex>` of the text in force. */
  get digest (): string {
    return sha256(this.#texts.get(this.path) ?? '')
  }

  /**
   * What /readyz says while the file cannot be used. The reason may quote the file, so the log alone has it.
   * @param name of the file, such as `the lock`
   */
  remark (name: string): string | undefined {
    return this.#problem && `${name} cannot be used as it is, so the last good one stays in force; the log says why`
  }

  /** Reads the file again now. Resolves when its content is in force, or its problem was reported. */
  async reload (): Promise<void> {
    await (this.#reading = this.#reading.then(() => this.#read()))
  }

  close (): void {
    this.#isClosed = true
    this.#watch(new Set())
    clearTimeout(this.#timer)
    this.removeAllListeners()
  }

  #watch (paths: ReadonlySet<string>): void {
    for (const path of this.#watched) if (!paths.has(path)) unwatchFile(path, this.#readLater)
    for (const path of paths) {
      if (this.#watched.has(path)) continue
      watchFile(path, { interval: CHECK_MS, persistent: false }, this.#readLater)
      // It may have changed between its reading and the first look.
      this.#readLater()
    }
    this.#watched = paths
  }

  /** An edit may take several writes, and half of a rule may grant more than the whole one. */
  readonly #readLater = (): void => {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => { void this.reload() }, CHECK_MS).unref()
  }

  async #read (): Promise<void> {
    const texts = new Map<string, string>()
    try {
      const value = await readValue(this.path, this.#parse, texts)
      if (this.#isClosed) return
      const isSame = isDeepStrictEqual(texts, this.#texts)
      this.#value = value
      this.#texts = texts
      if (this.#problem !== undefined) this.emit('failed', this.#problem = undefined)
      if (!isSame) this.emit('changed', value)
    } catch (cause) {
      if (this.#isClosed) return
      const error = cause instanceof ConfigError ? cause : new ConfigError(`${this.path}: ${String(cause)}`, { cause })
      if (this.#problem !== error.message) this.emit('failed', error)
      this.#problem = error.message
    }
    this.#watch(new Set(texts.keys()))
  }
}

/** @param texts receives what is read */
async function readValue<Value> (
  path: string, parse: ParseFile<Value>, texts: Map<string, string>, setting?: string
): Promise<Value> {
  const readInto = async (file: string, read: ReadNamed): Promise<string> => {
    // One that cannot be read is followed too.
    texts.set(file, '')
    const text = await read(file)
    texts.set(file, text)
    return text
  }
  const text = await readInto(path, (file) => readTextFile(file, setting))
  return await parse(text, async (file) => await readInto(file, async () => (await readRegularFile(file)).toString()))
}
