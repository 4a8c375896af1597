import { mainFileError } from '../shared/errors.ts'
import { checksumsOf, type FileChecksums } from './checksums.ts'
import { decodeText, decodeUtf8, type DecodedText } from './decode.ts'
import type { FileKind } from './file-kind.ts'

/** The bytes of one file in one state. All answers share one object for each state: what they derive is kept by it. */
export class FileContent {
  readonly bytes: Buffer
  readonly checksums: FileChecksums

  constructor (bytes: Buffer, checksums = checksumsOf(bytes)) {
    this.bytes = bytes
    this.checksums = checksums
  }

  /** `sha256:<hex>` of the bytes. */
  get digest (): string {
    return this.checksums.digest
  }

  /** The text by `read_file_in_skill`'s rules; undefined when the file is not text. */
  get text (): DecodedText | undefined {
    return decodeText(this.bytes)
  }

  /** The text as strict UTF-8, a byte order mark kept; undefined when the file is not UTF-8. */
  get utf8 (): string | undefined {
    return decodeUtf8(this.bytes)
  }

  get kind (): FileKind | undefined {
    return this.checksums.kind
  }
}

/** The text of a main file. Throws `main_file_not_utf8`, about the skill of this name. */
export function mainFileText ({ utf8 }: FileContent, name: string): string {
  if (utf8 === undefined) throw mainFileError.notUtf8(name)
  return utf8
}
