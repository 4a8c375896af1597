import { looksLikeText } from './decode.ts'

/** What the first bytes of a file say for certain. `data` is anything else that is not text. */
export type FileKind = 'program' | 'archive' | 'image' | 'pdf' | 'script' | 'data'

/** Bytes of a file that tell its kind: the mark of a tar archive is the last one. */
export const HEAD_BYTES = 262

/** Marks at the very beginning. Sources: the documents of the formats, and file(1). */
const MARKS: ReadonlyArray<readonly [kind: FileKind, mark: string]> = [
  ['program', '\x7fELF'],
  // Mach-O in both orders of bytes and both widths; for several processors its mark is that of a Java class.
  ['program', '\xfe\xed\xfa\xce'],
  ['program', '\xfe\xed\xfa\xcf'],
  ['program', '\xce\xfa\xed\xfe'],
  ['program', '\xcf\xfa\xed\xfe'],
  ['program', '\xca\xfe\xba\xbe'],
  ['program', '\0asm'],
  ['archive', 'PK\x03\x04'],
  ['archive', 'PK\x05\x06'],
  ['archive', '\x1f\x8b\x08'],
  ['archive', '\xfd7zXZ\0'],
  ['archive', '7z\xbc\xaf\x27\x1c'],
  ['archive', 'Rar!\x1a\x07'],
  ['archive', '\x28\xb5\x2f\xfd'],
  ['image', '\x89PNG\r\n\x1a\n'],
  ['image', '\xff\xd8\xff'],
  ['image', 'GIF87a'],
  ['image', 'GIF89a'],
  ['pdf', '%PDF-'],
  ['script', '#!/'],
  ['script', '#! /']
]

const MARKED = MARKS.map(([kind, mark]) => ({ kind, mark: Buffer.from(mark, 'latin1') }))
const FIRST_BYTES: ReadonlySet<number> = new Set([...MARKED.map(({ mark }) => mark[0] ?? 0), ...Buffer.from('MBR')])

/**
 * Text after these letters is more likely than a program of Windows, or an image: their headers have zeros early on.
 */
const HEADER_BYTES = 64

const TAR_MARK = 'ustar'
const TAR_MARK_AT = 257

/**
 * The kind of a file; undefined for text that has no mark.
 * @param head its first HEAD_BYTES, or all of it
 */
export function fileKind (head: Buffer): FileKind | undefined {
  return markedKind(head) ?? (looksLikeText(head) ? undefined : 'data')
}

/** Whether a file of this kind is text. */
export function isTextKind (kind: FileKind | undefined): boolean {
  return kind === undefined || kind === 'script'
}

function markedKind (head: Buffer): FileKind | undefined {
  const [first] = head
  if (first !== undefined && FIRST_BYTES.has(first)) {
    for (const { kind, mark } of MARKED) if (head.subarray(0, mark.length).equals(mark)) return kind
    const start = head.toString('latin1', 0, 10)
    if (start.startsWith('MZ') && head.subarray(0, HEADER_BYTES).includes(0)) return 'program'
    if (/^BZh[1-9]1AY&SY/.test(start)) return 'archive'
    if (start.startsWith('RIFF') && head.toString('latin1', 8, 12) === 'WEBP') return 'image'
  }
  return head.toString('latin1', TAR_MARK_AT, TAR_MARK_AT + TAR_MARK.length) === TAR_MARK ? 'archive' : undefined
}
