import { dirname, relative, resolve, sep } from 'node:path'
import { Type } from '@sinclair/typebox'
import { reasonOf, replaceFile } from '../config/files/files.ts'
import { readYamlFile } from '../config/files/yaml-file.ts'
import { ConfigError } from '../config/setting.ts'
import { compareCodePoints } from '../core/shared/text.ts'

const BaselineSchema = Type.Record(
  Type.String(), Type.Array(Type.String(), { title: 'a list of codes' }), { title: 'an object of paths' }
)

/** Findings that a repository has accepted: codes by the path of the skill from the folder of the file. */
export class Baseline {
  readonly #file: string
  readonly #cwd: string
  readonly #codes = new Map<string, ReadonlySet<string>>()

  /**
   * An empty one.
   * @param file absolute
   * @param cwd where the paths of reports begin
   */
  constructor (file: string, cwd: string) {
    this.#file = file
    this.#cwd = cwd
  }

  /** @throws ConfigError for a file that is not there, or has another shape */
  async read (): Promise<this> {
    const { value } = await readYamlFile(this.#file, BaselineSchema, '--baseline')
    for (const [path, codes] of Object.entries(value)) this.#codes.set(path, new Set(codes))
    return this
  }

  accepts (path: string, code: string): boolean {
    return this.#codes.get(this.#keyOf(path))?.has(code) === true
  }

  accept (path: string, codes: readonly string[]): void {
    this.#codes.set(this.#keyOf(path), new Set(codes))
  }

  /** Sorted, so that a change of it is easy to read. */
  async write (): Promise<void> {
    const entries = [...this.#codes].map(([path, codes]) => [path, [...codes].sort(compareCodePoints)] as const)
      .sort(([a], [b]) => compareCodePoints(a, b))
    const text = JSON.stringify(Object.fromEntries(entries), null, 2)
    await replaceFile(this.#file, `${text}\n`).catch((error: unknown) => {
      throw new ConfigError(`--baseline: ${this.#file} cannot be written: ${reasonOf(error)}`)
    })
  }

  #keyOf (path: string): string {
    return relative(dirname(this.#file), resolve(this.#cwd, path)).split(sep).join('/') || '.'
  }
}
