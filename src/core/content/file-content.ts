import { sha256 } from '../digest.ts'
import { decodeText, decodeUtf8, type DecodedText } from '../text.ts'

/**
 * The bytes of one file in one state, with what is derived from them. Made once per state and shared by every
 * door; derived forms are made on first use, so that a caller may hang its own renderings on the object through
 * a WeakMap and pay for them once.
 */
export class FileContent {
  readonly bytes: Buffer
  /** `sha256:<hex>` of the bytes. */
  readonly digest: string
  /** Modification time, for `Last-Modified` only: never a validator of its own. */
  readonly modified: Date
  /**
   * The revision of a state of the skill in which the file has these bytes: two answers with one revision belong together.
   * Undefined while it is not known, and for a file that belongs to none, behind a link to a folder.
   */
  readonly revision: string | undefined
  #text: DecodedText | undefined | null = null
  #utf8: string | undefined | null = null

  constructor (bytes: Buffer, modified: Date, digest = sha256(bytes), revision?: string) {
    this.bytes = bytes
    this.digest = digest
    this.modified = modified
    this.revision = revision
  }

  inRevision (revision: string | undefined): FileContent {
    return new FileContent(this.bytes, this.modified, this.digest, revision)
  }

  /** The text by `read_file_in_skill`'s rules; undefined when it is not text. */
  get text (): DecodedText | undefined {
    if (this.#text === null) this.#text = decodeText(this.bytes)
    return this.#text
  }

  /** The text as strict UTF-8, a BOM kept; undefined when it is not UTF-8. */
  get utf8 (): string | undefined {
    if (this.#utf8 === null) this.#utf8 = decodeUtf8(this.bytes)
    return this.#utf8
  }
}
