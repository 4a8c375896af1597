/**
 * Why a file of a skill is not in its manifest. Its name is not UTF-8, its absolute path is too long for the system, it is
 * no regular file, or it may not be read. A link may lead to a folder, or to no file of the skill. `outside` does not say whether there is something.
 */
export type LeftOutKind = 'unnameable' | 'too_long' | 'special' | 'unreadable' | 'folder_link' | 'outside'

/** Names that are kept of each kind. */
const MAX_NAMES = 3

/** What was left out of a manifest. */
export class LeftOutFiles {
  readonly #kinds = new Map<LeftOutKind, { readonly names: string[], count: number }>()

  add (kind: LeftOutKind, path: string): void {
    let known = this.#kinds.get(kind)
    if (known === undefined) this.#kinds.set(kind, known = { names: [], count: 0 })
    known.count++
    if (known.names.length < MAX_NAMES) known.names.push(path)
  }

  has (kind: LeftOutKind): boolean {
    return this.#kinds.has(kind)
  }

  /** The first files of each kind, and how many there are. */
  [Symbol.iterator] (): IterableIterator<[LeftOutKind, { readonly names: readonly string[], readonly count: number }]> {
    return this.#kinds.entries()
  }
}
