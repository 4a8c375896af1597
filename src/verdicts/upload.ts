import { posix } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { constants, inflateRawSync } from 'node:zlib'
import { ArchiveError, commonFolder, withoutMacFiles } from '../archive/archive-names.ts'
import { type ZipItem, ZipReader } from '../archive/zip-reader.ts'
import { describeSkill } from '../core/read-skill.ts'
import { isMainFile, mainFileAmong } from '../core/format/main-files.ts'
import { contentFindings, leftOutFindings } from '../core/revisions/file-findings.ts'
import type { Finding, ListedFile } from '../core/shared/skill.ts'
import {
  createSkillFilter, IGNORE_FILE, type IgnoreRules, MAX_IGNORE_FILE_BYTES, parseIgnoreFile, type SkillFilter,
  unusableRules
} from '../core/read/ignore-file.ts'
import { RefusedError } from '../core/read/refused.ts'
import { isHidden } from '../core/read/hidden.ts'
import { LeftOutFiles } from '../core/read/walk.ts'
import { FileContent } from '../core/read/file-content.ts'
import { fileKind, type FileKind, HEAD_BYTES } from '../core/read/file-kind.ts'
import { parseSkillBytes } from '../core/format/main-file.ts'
import { yieldIfNeeded } from '../core/shared/async.ts'
import { MAX_MAIN_FILE_BYTES, MAX_SKILL_ENTRIES } from '../core/shared/limits.ts'
import { foldersAbove } from '../core/shared/paths.ts'
import { isSafeName } from '../core/shared/skill-name.ts'
import { compareCodePoints } from '../core/shared/text.ts'
import { subjectOf } from './entry.ts'
import type { Subject } from './subject.ts'

/** Packed bytes of a file that always unpack to more than HEAD_BYTES. */
const PACKED_HEAD_BYTES = 2 * HEAD_BYTES

/** Most links in a chain that are followed. */
const MAX_LINKS = 8

/** The name of a skill without one. */
const NAMELESS = 'skill'

/**
 * Returns the subject for a SKILL.md that was sent alone. Its other files are not known, so no reference is checked.
 * @param folder name of its folder; default: the name in the frontmatter
 */
export async function subjectOfMainFile (bytes: Buffer, folder: string | undefined): Promise<Subject> {
  const main = bytes.length > MAX_MAIN_FILE_BYTES ? undefined : { name: 'SKILL.md', content: new FileContent(bytes) }
  const files = [{ path: 'SKILL.md', size_bytes: bytes.length }]
  return { ...await subjectFrom(folder, main, files), files: undefined }
}

/**
 * Returns the subject for a skill in a ZIP, at its root or in its only folder. Unpacks SKILL.md up to
 * MAX_MAIN_FILE_BYTES, and only the first bytes of other files. Writes nothing.
 * @throws {ArchiveError}
 */
export async function subjectOfArchive (bytes: Buffer, folder: string | undefined): Promise<Subject> {
  const zip = await ZipReader.open(bytes)
  try {
    const all = withoutMacFiles(await zip.entries())
    checkCount(all)
    const wrapper = wrapperOf(all.filter(({ kind }) => kind !== 'folder'))
    const leftOut = new LeftOutFiles()
    const inside = (await resolveLinks(zip, all, wrapper, leftOut)).filter(({ path }) => !isHidden(path, false))
    const name = folder ?? (wrapper === '' ? undefined : wrapper.slice(0, -1))
    const rules = await readRules(zip, inside.find(({ path }) => path === IGNORE_FILE))
    const filter = createSkillFilter(name ?? NAMELESS, undefined, rules)
    const entries = inside.filter(({ path }) => filter?.hides(path, false) !== true)
    const mainPath = mainFileAmong(entries.map(({ path }) => path))
    const item = entries.find(({ path }) => path === mainPath)
    const main = item === undefined || item.size > MAX_MAIN_FILE_BYTES
      ? undefined
      : { name: item.path, content: new FileContent(await buffer(await zip.stream(item))) }
    const files = entries.map(({ path, size }) => ({ path, size_bytes: size }))
    const kinds = new Map<string, FileKind | undefined>()
    for (const each of entries) {
      await yieldIfNeeded()
      kinds.set(each.path, fileKind(headOf(bytes, each)))
    }
    const findings = [...leftOutFindings(leftOut), ...contentFindings(files, (file) => kinds.get(file))]
    return await subjectFrom(name, main, files, findings, filter)
  } finally {
    zip.close()
  }
}

/** @param main undefined also for a main file that is too large */
async function subjectFrom (
  folder: string | undefined, main: { readonly name: string, readonly content: FileContent } | undefined,
  files: readonly ListedFile[], findings: readonly Finding[] = [], filter?: SkillFilter
): Promise<Subject> {
  const ownName = main && parseSkillBytes(main.content.bytes, '').summary.name
  const name = folder ?? (ownName !== undefined && isSafeName(ownName) ? ownName : NAMELESS)
  const place = { name, type: 'project', path: `/${name}`, realPath: `/${name}`, linked: false } as const
  const mainFiles = files.map(({ path }) => path).filter((path) => isMainFile(path))
  const refused = main === undefined && mainFiles.length > 0 && { refused: new RefusedError('too_large') }
  const skill = describeSkill(place, { mainFiles, main, filter, ...refused })
  return await subjectOf({ skill, manifest: { files }, mainFile: main?.content, fileFindings: findings })
}

/** Counts files and folders, as on a disk. */
function checkCount (entries: ReadonlyArray<{ readonly path: string }>): void {
  const paths = new Set(entries.flatMap(({ path }) => [path, ...foldersAbove(path)]))
  if (paths.size <= MAX_SKILL_ENTRIES) return
  const sentence = `the archive is refused: it has more than ${MAX_SKILL_ENTRIES} files and folders`
  throw new ArchiveError('too_large', sentence)
}

/** Returns the files of a skill by path, sorted. A link counts as the file that it leads to, as on a disk. */
async function resolveLinks (
  zip: ZipReader, items: readonly ZipItem[], wrapper: string, leftOut: LeftOutFiles
): Promise<ZipItem[]> {
  const inside = items.filter(({ path }) => path.startsWith(wrapper))
  const byPath = new Map(inside.map((item) => [item.path, item]))
  const folders = new Set(
    inside.flatMap(({ path, kind }) => [...foldersAbove(path), ...kind === 'folder' ? [path] : []])
  )
  const files: ZipItem[] = []
  for (const item of inside) {
    const path = item.path.slice(wrapper.length)
    let found: ZipItem | undefined = item
    let target = item.path
    for (let links = 0; found?.kind === 'link' && links < MAX_LINKS; links++) {
      target = posix.join(posix.dirname(target), await zip.linkTarget(found))
      found = byPath.get(target)
    }
    if (found?.kind === 'file') files.push({ ...found, path })
    else if (item.kind === 'link') leftOut.add(folders.has(target) ? 'folder_link' : 'outside', path)
  }
  return files.sort((a, b) => compareCodePoints(a.path, b.path))
}

async function readRules (zip: ZipReader, item: ZipItem | undefined): Promise<IgnoreRules | undefined> {
  if (item === undefined) return undefined
  if (item.size > MAX_IGNORE_FILE_BYTES) return unusableRules(`has more than ${MAX_IGNORE_FILE_BYTES} bytes`)
  return parseIgnoreFile(await buffer(await zip.stream(item)))
}

/** Returns the one folder that contains all files, with its `/`, if it is a skill; otherwise an empty text. */
function wrapperOf (entries: ReadonlyArray<{ readonly path: string }>): string {
  const wrapper = commonFolder(entries)
  const isSkill = entries.some(({ path }) => isMainFile(path.slice(wrapper.length)))
  return isSkill && isSafeName(wrapper.slice(0, -1)) ? wrapper : ''
}

/** Returns the first bytes of a file. One stream for each of 20,000 files would take seconds. */
function headOf (bytes: Buffer, { size, packedSize, isStored, start }: ZipItem): Buffer {
  if (size === 0) return Buffer.alloc(0)
  const packed = bytes.subarray(start, start + Math.min(packedSize, PACKED_HEAD_BYTES))
  if (isStored) return packed
  try {
    return inflateRawSync(packed, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: size })
  } catch (cause) {
    throw new ArchiveError('bad_archive', 'the archive is damaged', { cause })
  }
}
