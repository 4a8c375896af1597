import { isUtf8 } from 'node:buffer'

export type TextEncoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'latin-1'

export interface DecodedText {
  /** Verbatim: line ends are unchanged, and a BOM is kept as U+FEFF. */
  readonly content: string
  readonly encoding: TextEncoding
}

/** Characters that no text in Latin-1 has: C0 controls but white space, DEL, and C1 controls. */
const CONTROL = /[^\P{Cc}\t\n\f\r]/u

/** Undefined for bytes that are not strict UTF-8. */
export function decodeUtf8 (bytes: Buffer): string | undefined {
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

/** Decodes UTF-8, UTF-16 with a byte order mark, or Latin-1; undefined for binary content. */
export function decodeText (bytes: Buffer): DecodedText | undefined {
  const utf16 = decodeUtf16(bytes)
  if (utf16 !== undefined) return utf16
  if (bytes.includes(0)) return undefined
  const utf8 = decodeUtf8(bytes)
  if (utf8 !== undefined) return { content: utf8, encoding: 'utf-8' }
  const content = bytes.toString('latin1')
  return CONTROL.test(content) ? undefined : { content, encoding: 'latin-1' }
}

/** Whether the first bytes of a file are text by the rules of `decodeText`: the last character may be cut. */
export function looksLikeText (head: Buffer): boolean {
  if (encodingByMark(head) !== undefined) return true
  if (head.includes(0)) return false
  return startsAsUtf8(head) || !CONTROL.test(head.toString('latin1'))
}

export function startsAsUtf8 (head: Buffer): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true })
    return true
  } catch {
    return false
  }
}

function encodingByMark (bytes: Buffer): 'utf-16le' | 'utf-16be' | undefined {
  const mark = bytes.toString('latin1', 0, 2)
  if (mark === '\xff\xfe') return 'utf-16le'
  return mark === '\xfe\xff' ? 'utf-16be' : undefined
}

/** Requires a BOM and no NUL character, since binary data may begin with the bytes of a BOM (FF FE 00 01). */
function decodeUtf16 (bytes: Buffer): DecodedText | undefined {
  const encoding = encodingByMark(bytes)
  if (encoding === undefined) return undefined
  try {
    // Without `ignoreBOM` the decoder drops the BOM, and the content is no longer verbatim.
    const content = new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes)
    return content.includes('\0') ? undefined : { content, encoding }
  } catch {
    return undefined
  }
}
