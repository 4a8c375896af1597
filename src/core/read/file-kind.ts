import { looksLikeText } from './decode.ts'

/** What the first bytes of a file tell for certain. `data` is any other file that is not text. */
export type FileKind = 'program' | 'archive' | 'image' | 'pdf' | 'script' | 'data'

/** The mark of a tar archive ends here. */
export const HEAD_BYTES = 262

/** Signatures at the beginning of files, in Latin-1, from the specifications of the formats and file(1). */
const MARKS: ReadonlyArray<readonly [kind: FileKind, marks: readonly string[]]> = [
  // ELF; Mach-O in both byte orders and widths; universal Mach-O, which has the signature of Java classes; WebAssembly.
  ['program', ['\x7fELF', '\xfe\xed\xfa\xce', '\xfe\xed\xfa\xcf', '\xce\xfa\xed\xfe', '\xcf\xfa\xed\xfe']],
  ['program', ['\xca\xfe\xba\xbe', '\0asm']],
  // ZIP, gzip, xz, 7z, RAR, Zstandard.
  ['archive', ['PK\x03\x04', 'PK\x05\x06', '\x1f\x8b\x08', '\xfd7zXZ\0']],
  ['archive', ['7z\xbc\xaf\x27\x1c', 'Rar!\x1a\x07', '\x28\xb5\x2f\xfd']],
  ['image', ['\x89PNG\r\n\x1a\n', '\xff\xd8\xff', 'GIF87a', 'GIF89a']],
  ['pdf', ['%PDF-']],
  ['script', ['#!/', '#! /']]
]

/** Returns the kind of a file by its first HEAD_BYTES; undefined for text without a signature. */
export function fileKind (head: Buffer): FileKind | undefined {
  return markedKind(head.toString('latin1', 0, HEAD_BYTES)) ?? (looksLikeText(head) ? undefined : 'data')
}

function markedKind (start: string): FileKind | undefined {
  const kind = MARKS.find(([, marks]) => marks.some((mark) => start.startsWith(mark)))?.[0]
  if (kind !== undefined) return kind
  // A Windows program has zeros in its header. Other files with these letters are text.
  if (start.startsWith('MZ') && start.slice(0, 64).includes('\0')) return 'program'
  if (/^BZh[1-9]1AY&SY/.test(start) || start.startsWith('ustar', 257)) return 'archive'
  return /^RIFF.{4}WEBP/s.test(start) ? 'image' : undefined
}

export function isTextKind (kind: FileKind | undefined): boolean {
  return kind === undefined || kind === 'script'
}
