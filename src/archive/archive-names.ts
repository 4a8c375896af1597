import { MAX_LINK_BYTES, MAX_PATH_BYTES } from '../core/shared/limits.ts'
import { quotePath } from '../core/shared/paths.ts'

/** Most files and folders of one archive. */
const MAX_ARCHIVE_ENTRIES = 50_000

/** The reason why an archive is refused. The message is one sentence without a full stop, and safe to show. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError'
  readonly code: 'bad_archive' | 'too_large'

  constructor (code: ArchiveError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Returns whether bytes begin like a ZIP archive, be it an empty one. */
export function isZip (bytes: Buffer): boolean {
  return ['PK\u0003\u0004', 'PK\u0005\u0006'].includes(bytes.toString('latin1', 0, 4))
}

export function refusedEntry (name: string, problem: string): ArchiveError {
  return new ArchiveError('bad_archive', `the archive is refused: ${quotePath(name)} ${problem}`)
}

/** Checks the names of one archive. Bad names are refused, not repaired. */
export class ArchiveNames {
  #count = 0
  readonly #taken = new Set<string>()

  /**
   * @returns the path of an entry, without `./` at the beginning and slashes at the end
   * @throws ArchiveError for a bad or repeated name
   */
  add (name: string, isFolder: boolean): string {
    const path = name.replace(/^(?:\.\/+)+/, '').replace(/\/+$/, '')
    if (++this.#count > MAX_ARCHIVE_ENTRIES) {
      const sentence = `the archive is refused: it has more than ${MAX_ARCHIVE_ENTRIES} files and folders`
      throw new ArchiveError('too_large', sentence)
    }
    // A few bytes unpack to a name of megabytes, and all names are kept until the end.
    if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw refusedEntry(name, `is longer than ${MAX_PATH_BYTES} bytes`)
    if (path.includes('\\')) throw refusedEntry(name, 'has a backslash in its name')
    if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) throw refusedEntry(name, 'is an absolute path')
    if (!path.isWellFormed() || path.includes('\ufffd') || path.includes('\0')) {
      throw refusedEntry(name, 'is not a file name in UTF-8')
    }
    if (path.split('/').some((segment) => segment === '' || segment === '.' || segment === '..')) {
      throw refusedEntry(name, 'leads out of its folder')
    }
    // Some file systems do not distinguish upper and lower case, so names that differ only in case clash.
    const key = path.normalize('NFC').toLowerCase()
    if (!isFolder && this.#taken.has(key)) throw refusedEntry(name, 'occurs twice')
    this.#taken.add(key)
    return path
  }
}

/** @throws ArchiveError when the target of a link is outside the archive */
export function checkLink (path: string, target: string): void {
  if (Buffer.byteLength(target) > MAX_LINK_BYTES) {
    throw refusedEntry(path, `is a link of more than ${MAX_LINK_BYTES} bytes`)
  }
  const segments = path.split('/').slice(0, -1)
  const isRelative = target !== '' && !target.startsWith('/') && !/[\\\0]/.test(target)
  const isInside = isRelative && target.split('/').every((segment) => {
    if (segment === '..') return segments.pop() !== undefined
    if (segment !== '' && segment !== '.') segments.push(segment)
    return true
  })
  if (!isInside) throw refusedEntry(path, 'is a link that leads out of the archive')
}

/** macOS writes the attributes of `X` into `._X` next to it, or into a folder `__MACOSX`. */
export function withoutMacFiles<T extends { readonly path: string }> (entries: readonly T[]): T[] {
  return entries.filter(({ path }) => !path.startsWith('__MACOSX/') && !/(?:^|\/)(?:\._[^/]*|\.DS_Store)$/.test(path))
}

/** Returns the one folder, with its slash, that all entries lie in; empty without one. */
export function commonFolder (entries: ReadonlyArray<{ readonly path: string }>): string {
  const [first] = entries
  const prefix = first?.path.slice(0, first.path.indexOf('/') + 1) ?? ''
  return entries.every(({ path }) => path.startsWith(prefix)) ? prefix : ''
}
