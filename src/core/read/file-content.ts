import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { sha256 } from '../shared/digest.ts'
import { mainFileError } from '../shared/errors.ts'
import { decodeText, decodeUtf8, type DecodedText } from './decode.ts'
import { fileKind, type FileKind } from './file-kind.ts'

/** Results of one pass over all bytes of a file. */
export interface FileChecksums {
  readonly size: number
  /** `sha256:<hex>`. */
  readonly digest: string
  /** For ZIP archives. */
  readonly crc32: number
  readonly kind: FileKind | undefined
  readonly isUtf8: boolean
}

export function checksumsOf (bytes: Buffer): FileChecksums {
  const { length: size } = bytes
  return { size, digest: sha256(bytes), crc32: crc32(bytes), kind: fileKind(bytes), isUtf8: isUtf8(bytes) }
}

/** The same for a file that is read piece by piece. */
export class Checksummer {
  readonly #hash = createHash('sha256')
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  #size = 0
  #crc = 0
  #kind: FileKind | undefined
  #isUtf8 = true

  update (bytes: Buffer): void {
    if (this.#size === 0) this.#kind = fileKind(bytes)
    this.#size += bytes.length
    this.#hash.update(bytes)
    this.#crc = crc32(bytes, this.#crc)
    this.#decode(bytes)
  }

  end (): FileChecksums {
    this.#decode()
    const digest = `sha256:${this.#hash.digest('hex')}`
    return { size: this.#size, digest, crc32: this.#crc, kind: this.#kind, isUtf8: this.#isUtf8 }
  }

  #decode (bytes?: Buffer): void {
    try {
      if (this.#isUtf8) this.#decoder.decode(bytes, { stream: bytes !== undefined })
    } catch {
      this.#isUtf8 = false
    }
  }
}

/** The bytes of a file in one state. Equal bytes share one object, by which answers keep what they derive. */
export class FileContent {
  readonly bytes: Buffer
  readonly checksums: FileChecksums

  constructor (bytes: Buffer, checksums = checksumsOf(bytes)) {
    this.bytes = bytes
    this.checksums = checksums
  }

  get digest (): string {
    return this.checksums.digest
  }

  /** Text as `read_file_in_skill` decodes it; undefined for binary content. */
  get text (): DecodedText | undefined {
    return decodeText(this.bytes)
  }

  /** The text with its byte order mark; undefined when the file is not UTF-8. */
  get utf8 (): string | undefined {
    return decodeUtf8(this.bytes)
  }

  get kind (): FileKind | undefined {
    return this.checksums.kind
  }
}

/** Returns the text of a main file. Throws `main_file_not_utf8` with the name of the skill. */
export function mainFileText ({ utf8 }: FileContent, name: string): string {
  if (utf8 === undefined) throw mainFileError.notUtf8(name)
  return utf8
}
