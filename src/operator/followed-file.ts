import { EventEmitter } from 'node:events'
import { unwatchFile, watchFile } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { sha256 } from '../core/shared/digest.ts'
import { type CoreLog, SILENT } from '../core/shared/log.ts'
import { ConfigError } from './setting.ts'
import { readRegularFile } from './files.ts'
import type { Prepared } from './prepared.ts'
import { readTextFile } from './yaml-file.ts'

/** Pause between two checks of the disk, and between a change and the reading, in milliseconds. */
const CHECK_MS = 400

/** Reads a file that the followed file names. */
export type ReadNamed = (path: string) => Promise<string>

/** @throws ConfigError if the text cannot be used */
type ParseFile<Value> = (path: string, text: string, readNamed: ReadNamed) => Value | Promise<Value>

interface FollowedOptions {
  /** Name of the file for the log and /readyz: `the lock`. */
  readonly name: string
  /** The setting that names the file: `PORT or --port`. */
  readonly setting: string
  readonly path: string
  readonly log?: CoreLog
}

/** The parts of a followed file that report its changes. */
export type FollowedPolicy = Pick<FollowedFile<unknown>, 'path' | 'digest' | 'on'>

/**
 * Reads a file of the operator again within two seconds after it or a file that it names, such as a key, has changed.
 * While it cannot be used, the last good value stays in force. `watchFile` compares the target of a path, so it notices
 * replaced links (Kubernetes' `..data`), files that were missing, and changes on network disks. Events, which are
 * logged too: `changed` with each new value, once it is in force; `failed` with the reason, once for each.
 */
export class FollowedFile<Value> extends EventEmitter<{ changed: [Value], failed: [ConfigError] }> {
  readonly path: string
  readonly #name: string
  readonly #log: CoreLog
  readonly #parse: ParseFile<Value>
  #value!: Value
  /** Texts of the file in force and of the files that it names, by path. */
  #texts: ReadonlyMap<string, string> = new Map()
  #problem: string | undefined
  #watched: ReadonlySet<string> = new Set()
  #timer: NodeJS.Timeout | undefined
  #reading = Promise.resolve()
  #isClosed = false

  private constructor ({ name, path, log = SILENT }: FollowedOptions, parse: ParseFile<Value>) {
    super()
    this.path = path
    this.#name = name
    this.#log = log
    this.#parse = parse
  }

  /** @throws ConfigError if the file cannot be used now */
  static async open<Value> (options: FollowedOptions, parse: ParseFile<Value>): Promise<FollowedFile<Value>> {
    const file = new FollowedFile(options, parse)
    const texts = new Map<string, string>()
    file.#value = await file.#readInto(texts, { setting: options.setting })
    file.#texts = texts
    file.#watch(new Set(texts.keys()))
    return file
  }

  /** The last good listing. */
  get value (): Value {
    return this.#value
  }

  /** `sha256:<hex>` of the text in force. */
  get digest (): string {
    return sha256(this.#texts.get(this.path) ?? '')
  }

  /** Problem for /readyz while the file cannot be used. Only the log has the reason, which may quote the file. */
  get problem (): string | undefined {
    const problem = 'cannot be used, so the last good one stays in force; the log says why'
    return this.#problem && `${this.#name} ${problem}`
  }

  /**
   * Reads the file for the next state of the service.
   * @param parse the parser of the next state, which may know the roots to come
   * @param isOther whether the value may differ although the file is the same
   * @throws ConfigError if the file cannot be used
   */
  async prepare (parse = this.#parse, isOther = false): Promise<Prepared & { readonly value: Value }> {
    const texts = new Map<string, string>()
    const value = await this.#readInto(texts, { parse })
    return {
      value,
      commit: () => {
        this.#commitValue(value, texts, isOther)
        this.#watch(new Set(texts.keys()))
      }
    }
  }

  /** Reads the file again now. Resolves when its content is in force or its problem is reported. */
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
      // It may have changed between its reading and the first check.
      this.#readLater()
    }
    this.#watched = paths
  }

  /** Reads the file after a pause: an edit may take several writes, and half a rule may grant more than the whole. */
  readonly #readLater = (): void => {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => { void this.reload() }, CHECK_MS).unref()
  }

  async #read (): Promise<void> {
    const texts = new Map<string, string>()
    try {
      const value = await this.#readInto(texts)
      if (this.#isClosed) return
      this.#commitValue(value, texts)
    } catch (cause) {
      if (this.#isClosed) return
      const error = cause instanceof ConfigError ? cause : new ConfigError(`${this.path}: ${String(cause)}`, { cause })
      if (this.#problem !== error.message) {
        const details = { file: this.path, problem: error.message }
        this.#log.warn(details, `${this.#name} cannot be used; the last good one stays in force`)
        this.emit('failed', error)
      }
      this.#problem = error.message
    }
    this.#watch(new Set(texts.keys()))
  }

  /** Puts a value in force. */
  #commitValue (value: Value, texts: ReadonlyMap<string, string>, isOther = false): void {
    const isSame = !isOther && isDeepStrictEqual(texts, this.#texts)
    this.#value = value
    this.#texts = texts
    if (this.#problem !== undefined) this.#log.info({ file: this.path }, `${this.#name} can be used again`)
    this.#problem = undefined
    if (!isSame) {
      this.emit('changed', value)
      this.#log.info({ file: this.path }, `${this.#name} has changed and is in force`)
    }
  }

  /** @param texts receives the file and those that it names; one that cannot be read is watched too */
  async #readInto (
    texts: Map<string, string>,
    { setting, parse = this.#parse }: { readonly setting?: string, readonly parse?: ParseFile<Value> } = {}
  ): Promise<Value> {
    const readNamed: ReadNamed = async (path) => {
      texts.set(path, '')
      const text = path === this.path ? await readTextFile(path, setting) : (await readRegularFile(path)).toString()
      texts.set(path, text)
      return text
    }
    return await parse(this.path, await readNamed(this.path), readNamed)
  }
}
