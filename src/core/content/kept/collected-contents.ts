import type { FileContent } from '../../files/file-content.ts'
import type { Manifest } from '../../shared/skill.ts'
import type { Contents } from './revision-memory.ts'

/** Bytes of the files of one skill, gathered while its manifest is made. Texts and renderings of the files are no part of it. */
export class CollectedContents {
  readonly #contents = new Map<string, Buffer>()
  readonly #before: Contents
  readonly #maxBytes: number
  #bytes = 0

  /** @param before contents that are kept already */
  constructor (before: Contents, maxBytes: number) {
    this.#before = before
    this.#maxBytes = maxBytes
  }

  add ({ digest, bytes }: FileContent): void {
    if (this.#contents.has(digest) || !this.hasRoomFor(BigInt(bytes.length))) return
    this.#contents.set(digest, bytes)
    this.#bytes += bytes.length
  }

  hasRoomFor (bytes: bigint): boolean {
    return BigInt(this.#bytes) + bytes <= this.#maxBytes
  }

  lacks (digest: string): boolean {
    return this.#get(digest) === undefined
  }

  /** The bytes of every file of a manifest; undefined when some are missing. */
  complete ({ files }: Manifest): Contents | undefined {
    const all = new Map<string, Buffer>()
    for (const { digest } of files) {
      const bytes = this.#get(digest)
      if (bytes === undefined) return undefined
      all.set(digest, bytes)
    }
    return all
  }

  #get (digest: string): Buffer | undefined {
    return this.#contents.get(digest) ?? this.#before.get(digest)
  }
}
