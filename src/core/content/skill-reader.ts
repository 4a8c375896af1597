import { createSlicer } from '../shared/async.ts'
import { type Disk, realpathOrNothing } from '../disk/disk.ts'
import type { LeftOutFiles } from '../disk/left-out-files.ts'
import { areTrustworthy, holds, signatureAt, statOf } from '../disk/observed.ts'
import { pathBelow } from '../disk/paths.ts'
import { asRefused, changed, type Refusal, RefusedError } from '../disk/refused.ts'
import { isSameState, signatureOf } from '../disk/signature.ts'
import { observeState, type Walk, type WalkedFile } from '../disk/walk.ts'
import { FileContent } from '../files/file-content.ts'
import type { FilePlace, FileStore } from '../files/file-store.ts'
import type { Checksums, OpenFile } from '../files/open-file.ts'
import { openInside } from '../files/open-inside.ts'
import { MAX_BUFFERED_FILE_BYTES, MAX_SKILL_BYTES } from '../shared/limits.ts'
import type { Signature } from '../shared/skill.ts'
import { compareCodePoints } from '../shared/text.ts'
import type { CollectedContents } from './kept/collected-contents.ts'

/**
 * Work of hashing for which a list of many skills waits, in bytes; to open a file counts as much as FILE_WORK_BYTES. What is more
 * goes on in the background, and the list has the skill without its revision until then. Measured: 128 MiB take 0.2 s.
 */
export const MAX_LISTED_WORK_BYTES = 128 * 1_048_576
const FILE_WORK_BYTES = 65_536

/** A file whose bytes are known while it is in that state. */
export interface KnownFile {
  readonly state: Signature
  readonly checksums: Checksums
}

/** What is to be read of a skill. */
export interface ReadingPlan {
  readonly walk: Walk
  readonly known: ReadonlyMap<string, KnownFile> | undefined
  readonly contents: CollectedContents | undefined
  /** A list of many skills does not wait for so much: see MAX_LISTED_WORK_BYTES. */
  readonly isHeavy: boolean
  /** Whether files stay in memory for the next answer. */
  readonly isKept: boolean
}

export interface PlanOptions {
  readonly known: ReadonlyMap<string, KnownFile> | undefined
  /** Where the bytes of the files are kept, if they are. */
  readonly contents?: CollectedContents | undefined
  /** Default true. */
  readonly isKept?: boolean
}

/** A file of a skill as it was read. */
export interface SkillFile {
  readonly path: string
  readonly state: Signature
  readonly checksums: Checksums
}

/** All files of a skill, in one state. */
interface SkillReading {
  /** Sorted by path. */
  readonly files: readonly SkillFile[]
  readonly walk: Walk
  /** Whether the next edit is sure to change one of the states. */
  readonly isTrustworthy: boolean
}

/** What a file gives that is read now. */
type Reading = Omit<SkillFile, 'path'> & { readonly content: FileContent | undefined }

/** Finds out how much there is to be read after a walk. */
export function planReading (walk: Walk, { known, contents, isKept = true }: PlanOptions): ReadingPlan {
  let work = 0n
  for (const file of walk.files) {
    if (knownChecksums({ walk, known, contents }, file) === undefined) work += BigInt(FILE_WORK_BYTES) + (walk.observed.get(file.path)?.size ?? 0n)
  }
  return { walk, known, contents, isKept, isHeavy: walk.excess === undefined && work > MAX_LISTED_WORK_BYTES }
}

/**
 * Reads what a plan names.
 * @param since `readCount` of the store when the question was asked
 * @throws {RefusedError} `changed` when something moved meanwhile, `too_many_files`, `too_many_bytes`
 */
export async function readSkill (disk: Disk, store: FileStore, plan: ReadingPlan, since?: number): Promise<SkillReading> {
  const { walk, contents } = plan
  const { base, observed, signal, excess } = walk
  if (excess !== undefined) throw new RefusedError(excess)
  const yieldIfNeeded = createSlicer()
  const files: SkillFile[] = []
  let bytes = 0n
  for (const file of walk.files) {
    await yieldIfNeeded()
    signal?.throwIfAborted()
    const reading = knownReading(plan, file) ?? await readWalked(disk, store, plan, file, since)
    if (reading === undefined) continue
    const { state, checksums, content } = reading
    observeState(observed, file.path, state)
    if (content !== undefined) contents?.add(content)
    files.push({ path: file.path, state, checksums })
    // The walk counts no links: twenty thousand of them may lead to one large file.
    bytes += state.size
    if (bytes > MAX_SKILL_BYTES) throw new RefusedError('too_many_bytes')
  }
  if (walk.leftOut.has('outside') && await realpathOrNothing(disk, base) !== base) throw changed('the skill is elsewhere now, and links in it lead there')
  // Nothing moved between the first state and the last: all of them are one state of the skill.
  if (!await holds(statOf(disk), base, observed)) throw changed('the skill changed while it was listed')
  files.sort((a, b) => compareCodePoints(a.path, b.path))
  return { files, walk, isTrustworthy: areTrustworthy(observed, walk.startedAt) }
}

function knownReading (plan: ReadingPlan, file: WalkedFile): Reading | undefined {
  const known = knownChecksums(plan, file)
  return known && { ...known, content: undefined }
}

/** The target of a link may have become another file with the same state. */
function knownChecksums ({ walk, known, contents }: Pick<ReadingPlan, 'walk' | 'known' | 'contents'>, { path, entry }: WalkedFile): KnownFile | undefined {
  const before = known?.get(path)
  const state = walk.observed.get(path)
  if (before === undefined || state === undefined || !entry.isFile() || contents?.lacks(before.checksums.digest) === true) return undefined
  return isSameState(state, before.state) ? before : undefined
}

/** Undefined for what is left out. */
async function readWalked (disk: Disk, store: FileStore, { walk, contents, isKept }: ReadingPlan, { path, entry }: WalkedFile, since?: number): Promise<Reading | undefined> {
  const { base, observed, leftOut, filter, signal } = walk
  try {
    return await readFile(store, { disk, folder: base, path, filter }, { contents, isKept, since, signal, size: observed.get(path)?.size })
  } catch (error) {
    signal?.throwIfAborted()
    const refused = asRefused(error)
    if (refused.refusal === 'io_error' || refused.refusal === 'changed') throw refused
    // A regular file has nothing else that is wrong with it: it, or a folder above, was replaced since it was listed. A file behind a link may have grown.
    if (refused.refusal === 'too_large' || (entry.isFile() && refused.refusal !== 'permission_denied')) throw changed('a file was replaced, or grew, while its skill was listed')
    // It may become readable without a change to its folder: by a permission, or a new target of a link.
    observeState(observed, path, await signatureAt(disk, pathBelow(base, path)))
    note(leftOut, refused.refusal, path)
    return undefined
  }
}

function note (leftOut: LeftOutFiles, refusal: Refusal, path: string): void {
  if (refusal === 'permission_denied') leftOut.add('unreadable', path)
  else if (refusal === 'not_regular') leftOut.add('special', path)
  else if (refusal === 'is_directory') leftOut.add('folder_link', path)
  else leftOut.add('outside', path)
}

interface ReadFileOptions {
  readonly contents: CollectedContents | undefined
  readonly isKept: boolean
  readonly since: number | undefined
  readonly signal: AbortSignal | undefined
  readonly size: bigint | undefined
}

/** Small files through the store, so that an answer that needs their bytes next finds them in memory; large ones in pieces. */
async function readFile (store: FileStore, place: FilePlace, { contents, isKept, since, signal, size }: ReadFileOptions): Promise<Reading> {
  if (size !== undefined && size <= MAX_BUFFERED_FILE_BYTES) {
    const { content, signature } = await store.read(place, MAX_BUFFERED_FILE_BYTES, since, isKept)
    return { state: signature, checksums: content, content }
  }
  const file = await openInside(place.disk, place.folder, place.path, place.filter)
  try {
    if (file.stats.size > MAX_SKILL_BYTES) throw changed('a file grew while its skill was listed')
    return await hash(store, file, signal, contents)
  } finally {
    await file.close()
  }
}

async function hash (store: FileStore, file: OpenFile, signal: AbortSignal | undefined, contents: CollectedContents | undefined): Promise<Reading> {
  const state = signatureOf(file.stats)
  if (contents?.hasRoomFor(state.size) !== true) return { state, checksums: await store.checksums(file, { signal }), content: undefined }
  const pieces: Buffer[] = []
  const checksums = await store.checksums(file, { signal, onBytes: (bytes) => { pieces.push(Buffer.from(bytes)) } })
  return { state, checksums, content: new FileContent(Buffer.concat(pieces), checksums.digest) }
}
