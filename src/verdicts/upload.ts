import { constants, inflateRawSync } from 'node:zlib'
import { type Entry, fromBufferPromise, type ZipFile } from 'yauzl'
import { describeSkill } from '../core/read-skill.ts'
import { isMainFile, mainFileAmong } from '../core/format/main-files.ts'
import { createSkillFilter, type SkillFilter } from '../core/roots/ignore-rules.ts'
import { contentFindings } from '../core/revisions/file-findings.ts'
import type { ListedFile } from '../core/shared/skill.ts'
import { IGNORE_FILE, type IgnoreRules, parseIgnoreFile, unreadableIgnoreFile } from '../core/read/ignore-file.ts'
import { RefusedError } from '../core/read/refused.ts'
import { isHidden } from '../core/read/hidden.ts'
import { FileContent } from '../core/read/file-content.ts'
import { fileKind, type FileKind, HEAD_BYTES } from '../core/read/file-kind.ts'
import { parseSkillBytes } from '../core/format/main-file.ts'
import { forEachInSlices } from '../core/shared/async.ts'
import {
  MAX_IGNORE_FILE_BYTES, MAX_MAIN_FILE_BYTES, MAX_SKILL_ENTRIES, MAX_UNPACKED_RATIO, UNPACKED_RATIO_FROM_BYTES
} from '../core/shared/limits.ts'
import { isSafeName } from '../core/shared/skill-name.ts'
import { compareCodePoints } from '../core/shared/text.ts'
import { type FindingSource, subjectOf } from './entry.ts'
import type { Subject } from './subject.ts'

/** Why an archive cannot be judged: one sentence without a full stop. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError'
}

/** What an archive may say that it unpacks to, in bytes. */
const MAX_UNPACKED_BYTES = 256 * 1_048_576

/** Beginning of every ZIP with files, and of an empty one. */
const ZIP_MARKS = ['PK\u0003\u0004', 'PK\u0005\u0006']

/** Methods of packing. */
const STORED = 0
const DEFLATED = 8

/** What packers leave behind. */
const LEFT_BEHIND = /^__MACOSX\/|(?:^|\/)\.DS_Store$/

/** The bits of a Unix mode that say what a file is, and their value for a regular file. */
const FILE_TYPE = 0o170000
const REGULAR_FILE = 0o100000

/** How yauzl's sentences about such names begin. */
const UNSAFE_NAME = /^(?:absolute path|invalid relative path|invalid characters in fileName)/

/** Bytes of a packed file that give more than HEAD_BYTES of it, whatever they are. */
const PACKED_HEAD_BYTES = 2 * HEAD_BYTES

const TOO_MANY = `The archive has more than ${MAX_SKILL_ENTRIES} entries, folders included`

/** A skill that is named in no other way. */
const NAMELESS = 'skill'

export function isZip (bytes: Buffer): boolean {
  return ZIP_MARKS.includes(bytes.toString('latin1', 0, 4))
}

/**
 * A SKILL.md that was sent alone. Nobody knows the other files, so that no link is checked.
 * @param folder the name of its folder; without one, the name in the frontmatter is taken for it
 */
export async function subjectOfMainFile (
  bytes: Buffer, folder: string | undefined, sources: readonly FindingSource[]
): Promise<Subject> {
  const tooLarge = bytes.length > MAX_MAIN_FILE_BYTES
  const main = tooLarge ? undefined : { name: 'SKILL.md', content: new FileContent(bytes) }
  const subject =
    await subjectFrom({ folder, main, files: [{ path: 'SKILL.md', size_bytes: bytes.length }], tooLarge }, sources)
  return { ...subject, files: undefined }
}

/**
 * A skill in a ZIP, at its root or in its one folder. Only SKILL.md is unpacked, up to MAX_MAIN_FILE_BYTES; of the
 * other files names, sizes and first bytes are read. Nothing is written.
 * @throws {ArchiveError}
 */
export async function subjectOfArchive (
  bytes: Buffer, folder: string | undefined, sources: readonly FindingSource[]
): Promise<Subject> {
  const zip = await fromBufferPromise(bytes, { strictFileNames: true, validateEntrySizes: true }).catch(refuse)
  try {
    const all = await listEntries(zip, bytes.length)
    const wrapper = wrapperOf(all)
    const inside = all.map((entry) => ({ entry, path: entry.fileName.slice(wrapper.length) }))
      .sort((a, b) => compareCodePoints(a.path, b.path))
    const name = folder ?? (wrapper === '' ? undefined : wrapper.slice(0, -1))
    const filter = createSkillFilter(name ??
      NAMELESS, undefined, await readRules(zip, inside.find(({ path }) => path === IGNORE_FILE)?.entry))
    const entries = inside.filter(({ path }) => filter?.hides(path, false) !== true)
    const mainPath = mainFileAmong(entries.map(({ path }) => path))
    const packed = entries.find(({ path }) => path === mainPath)
    const tooLarge = packed !== undefined && packed.entry.uncompressedSize > MAX_MAIN_FILE_BYTES
    const main = packed === undefined ||
      tooLarge
      ? undefined
      : { name: packed.path, content: new FileContent(await unpack(zip, packed.entry)) }
    const files = entries.map(({ entry, path }) => ({ path, size_bytes: entry.uncompressedSize }))
    const kinds = await readKinds(zip, bytes, entries)
    return await subjectFrom({ folder: name, main, files, kinds, tooLarge, filter }, sources)
  } finally {
    zip.close()
  }
}

interface SkillParts {
  readonly folder: string | undefined
  /** Undefined for one that is missing or too large. */
  readonly main: { readonly name: string, readonly content: FileContent } | undefined
  readonly files: readonly ListedFile[]
  readonly kinds?: ReadonlyMap<string, FileKind>
  readonly tooLarge: boolean
  readonly filter?: SkillFilter | undefined
}

async function subjectFrom (
  { folder, main, files, kinds, tooLarge, filter }: SkillParts, sources: readonly FindingSource[]
): Promise<Subject> {
  const name = folder ?? (main && ownName(main.content)) ?? NAMELESS
  const skill = describeSkill({ name, type: 'project', path: `/${name}`, realPath: `/${name}`, linked: false }, {
    mainFiles: files.map(({ path }) => path).filter((path) => isMainFile(path)),
    main,
    filter,
    ...tooLarge && { refused: new RefusedError('too_large') }
  })
  return await subjectOf({
    skill,
    manifest: {
      files
    },
    mainFile: main?.content,
    fileFindings: kinds === undefined ? [] : contentFindings(files, kinds)
  }, sources)
}

async function readRules (zip: ZipFile, entry: Entry | undefined): Promise<IgnoreRules | undefined> {
  if (entry === undefined) return undefined
  if (entry.uncompressedSize > MAX_IGNORE_FILE_BYTES) {
    return unreadableIgnoreFile(`has more than ${MAX_IGNORE_FILE_BYTES} bytes`)
  }
  return parseIgnoreFile(await unpack(zip, entry))
}

function ownName ({ bytes }: FileContent): string | undefined {
  const { name } = parseSkillBytes(bytes, '').summary
  return isSafeName(name) ? name : undefined
}

/** @throws {ArchiveError} for what a reader of archives must not unpack */
async function listEntries (zip: ZipFile, packedBytes: number): Promise<readonly Entry[]> {
  if (zip.entryCount > MAX_SKILL_ENTRIES) throw new ArchiveError(TOO_MANY)
  const entries: Entry[] = []
  const names = new Set<string>()
  const folders = new Set<string>()
  let bytes = 0
  try {
    for await (const entry of zip.eachEntry()) {
      const { fileName } = entry
      if (fileName.endsWith('/') || LEFT_BEHIND.test(fileName)) continue
      if (entry.isEncrypted()) throw new ArchiveError('The archive is encrypted')
      if (fileName.includes('\uFFFD')) throw new ArchiveError('The archive has names that are not UTF-8')
      if (names.has(fileName)) throw new ArchiveError('The archive has two files of one name')
      names.add(fileName)
      // As on a disk, folders count too.
      for (let end = fileName.lastIndexOf('/'); end > 0 && !folders.has(fileName.slice(
        0, end
      )); end = fileName.lastIndexOf('/', end - 1)) folders.add(fileName.slice(0, end))
      if (names.size + folders.size > MAX_SKILL_ENTRIES) throw new ArchiveError(TOO_MANY)
      bytes += entry.uncompressedSize
      if (bytes > MAX_UNPACKED_BYTES ||
        (bytes > UNPACKED_RATIO_FROM_BYTES && bytes > packedBytes * MAX_UNPACKED_RATIO)) {
        throw new ArchiveError(
          `The archive unpacks to more than is read: 256 MiB, or ${MAX_UNPACKED_RATIO} times its own size`
        )
      }
      if (isFile(entry) && !isHidden(fileName, false)) entries.push(entry)
    }
  } catch (error) {
    refuse(error)
  }
  return entries
}

/** Packers that know no Unix modes leave them empty. */
function isFile ({ externalFileAttributes }: Entry): boolean {
  const type = (externalFileAttributes >>> 16) & FILE_TYPE
  return type === 0 || type === REGULAR_FILE
}

/**
 * The one folder that all files are in, with its `/`; empty when SKILL.md lies at the root or there are several
 * folders.
 */
function wrapperOf (entries: readonly Entry[]): string {
  const [first] = entries
  if (first === undefined) return ''
  const wrapper = first.fileName.slice(0, first.fileName.indexOf('/') + 1)
  const isSkill = entries.some(({ fileName }) =>
    fileName.startsWith(wrapper) && isMainFile(fileName.slice(wrapper.length)))
  return wrapper !== '' && isSkill && isSafeName(wrapper.slice(0, -1)) &&
    entries.every(({ fileName }) => fileName.startsWith(wrapper))
    ? wrapper
    : ''
}

async function readKinds (
  zip: ZipFile, bytes: Buffer, entries: ReadonlyArray<{ readonly entry: Entry, readonly path: string }>
): Promise<ReadonlyMap<string, FileKind>> {
  const kinds = new Map<string, FileKind>()
  await forEachInSlices(entries, async ({ entry, path }) => {
    const kind = fileKind(await unpackHead(zip, bytes, entry))
    if (kind !== undefined) kinds.set(path, kind)
  })
  return kinds
}

/** The first bytes of a file. One stream for each of 20,000 files would take seconds. */
async function unpackHead (zip: ZipFile, bytes: Buffer, entry: Entry): Promise<Buffer> {
  const { compressedSize, compressionMethod: method, uncompressedSize: maxOutputLength } = entry
  if (maxOutputLength === 0) return Buffer.alloc(0)
  try {
    const { fileDataStart } = await zip.readLocalFileHeaderPromise(entry, { minimal: true })
    const packed = bytes.subarray(fileDataStart, fileDataStart + Math.min(compressedSize, PACKED_HEAD_BYTES))
    if (method === STORED) return packed
    if (method !== DEFLATED) throw new ArchiveError('The archive is packed in another way than DEFLATE')
    return inflateRawSync(packed, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength })
  } catch (error) {
    return refuse(error)
  }
}

async function unpack (zip: ZipFile, entry: Entry): Promise<Buffer> {
  try {
    const pieces: Buffer[] = []
    for await (const piece of await zip.openReadStreamPromise(entry)) pieces.push(piece as Buffer)
    return Buffer.concat(pieces)
  } catch (error) {
    return refuse(error)
  }
}

/** yauzl's sentences may quote names from the archive. */
function refuse (error: unknown): never {
  if (error instanceof ArchiveError) throw error
  if (error instanceof Error && UNSAFE_NAME.test(error.message)) {
    throw new ArchiveError("The archive has a path that is absolute, or has '..' or a backslash")
  }
  throw new ArchiveError('The archive is no ZIP that can be read')
}
