import { isUtf8 } from 'node:buffer'

export type TextEncoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'latin-1'

export interface DecodedText {
  /** Verbatim: no newline translation, a BOM kept as U+FEFF. */
  readonly content: string
  readonly encoding: TextEncoding
}

/** `ignoreBOM` keeps the BOM in the text: without it TextDecoder drops it and the content is no longer verbatim. */
const utf16le = new TextDecoder('utf-16le', { fatal: true, ignoreBOM: true })
const utf16be = new TextDecoder('utf-16be', { fatal: true, ignoreBOM: true })

/** Strict UTF-8: undefined where a byte sequence is not valid, instead of U+FFFD. */
export function decodeUtf8 (bytes: Buffer): string | undefined {
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

/** Text in UTF-8, in UTF-16 with a byte order mark, or in Latin-1; undefined for binary content. */
export function decodeText (bytes: Buffer): DecodedText | undefined {
  const utf16 = decodeUtf16(bytes)
  if (utf16 !== undefined) return utf16
  if (bytes.includes(0)) return undefined
  const utf8 = decodeUtf8(bytes)
  if (utf8 !== undefined) return { content: utf8, encoding: 'utf-8' }
  return looksLikeLatin1(bytes) ? { content: bytes.toString('latin1'), encoding: 'latin-1' } : undefined
}

function isUtf16 (bytes: Buffer): boolean {
  return (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)
}

/** UTF-16 needs a BOM, and no NUL character: binary data may begin with the bytes of a BOM (FF FE 00 01). */
function decodeUtf16 (bytes: Buffer): DecodedText | undefined {
  const little = bytes[0] === 0xff
  if (!isUtf16(bytes)) return undefined
  try {
    const content = (little ? utf16le : utf16be).decode(bytes)
    return content.includes('\0') ? undefined : { content, encoding: little ? 'utf-16le' : 'utf-16be' }
  } catch {
    return undefined
  }
}

/** Bytes that are not UTF-8 count as text when they have no C0 control but white space, no DEL, and no C1 control. */
function looksLikeLatin1 (bytes: Buffer): boolean {
  for (const byte of bytes) {
    if (byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0c && byte !== 0x0d) return false
    if (byte >= 0x7f && byte < 0xa0) return false
  }
  return true
}

/** Whether bytes that come in pieces are UTF-8 together. */
export class Utf8Check {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  /** Of all pieces so far, of which the last may end within a character. */
  isValid = true

  add (piece: Buffer): void {
    if (this.isValid) this.isValid = this.#decodes(piece)
  }

  /** Of all pieces so far, the last character being complete. */
  get holds (): boolean {
    return this.isValid && this.#decodes()
  }

  #decodes (piece?: Buffer): boolean {
    try {
      this.#decoder.decode(piece, { stream: piece !== undefined })
      return true
    } catch {
      return false
    }
  }
}

/** Whether bytes are text by the rules of `decodeText`, of which the last character may be cut. */
export function looksLikeText (head: Buffer): boolean {
  if (isUtf16(head)) return true
  if (head.includes(0)) return false
  const check = new Utf8Check()
  check.add(head)
  return check.isValid || looksLikeLatin1(head)
}
