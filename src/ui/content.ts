import { basename } from 'node:path/posix'
import { mediaType } from '../core/content/media-type.ts'
import type { Manifest } from '../core/shared/skill.ts'
import type { SkillState } from '../core/content/skill-state.ts'
import type { FileContent } from '../core/files/file-content.ts'
import type { ServableFile } from '../core/files/file-store.ts'
import { SkillError } from '../core/shared/errors.ts'
import { decodeText } from '../core/files/decode.ts'
import { withoutEndSlashes } from '../core/shared/text.ts'
import { type CatalogEntry, describeState } from '../core/listing/entry.ts'
import { type EntryVerdicts, type Judging, TARGET_NAMES, type TargetVerdict } from '../verdicts/index.ts'
import { MAX_SHOWN_CHARACTERS } from './pages/source.ts'

/** Longest character in UTF-8. */
const MAX_UTF8_BYTES = 4

/** An entry of the catalog, and what every target does with the skill. */
export type JudgedSkill = CatalogEntry & EntryVerdicts & { readonly targets: readonly TargetVerdict[] }

/** What the page of a skill shows, of one state of it. */
export interface ShownSkill {
  readonly entry: JudgedSkill
  /** Undefined when the files cannot be listed. */
  readonly manifest: Manifest | undefined
  /** Path of the main file, `SKILL.md` when there is none. */
  readonly mainFile: string
  /** Undefined when it cannot be read as text; `problem` says why, without a full stop. */
  readonly main: { readonly text: string, readonly digest: string } | undefined
  readonly problem: string | undefined
}

export async function readSkill (state: SkillState, judge: Judging): Promise<ShownSkill> {
  // Chosen targets decide on the severities of findings: the page shows those of the catalog.
  const entry = await describeState(state, async (all) => ({ ...await judge(all), targets: (await judge(all, TARGET_NAMES)).targets ?? [] }))
  const mainFile = basename(state.skill.metadata.path)
  const manifest = entry.revision === null ? undefined : await state.manifest()
  const content = await orSentence(() => state.mainFile())
  if (typeof content === 'string') return { entry, manifest, mainFile, main: undefined, problem: content }
  const { utf8, digest } = content
  if (utf8 === undefined) return { entry, manifest, mainFile, main: undefined, problem: `${mainFile} is not UTF-8` }
  return { entry, manifest, mainFile, main: { text: utf8, digest }, problem: undefined }
}

/** What the page of a file shows. */
export interface ShownFile {
  readonly bytes: number
  readonly mediaType: string
  /** Undefined for a file that is not text. */
  readonly text: string | undefined
  readonly encoding: string | undefined
  /** Of the whole file; undefined for one that is too large to be read for it. */
  readonly digest: string | undefined
  /** The text is the beginning of a large file. */
  readonly isCut: boolean
  /** Undefined when the files cannot be listed. */
  readonly manifest: Manifest | undefined
}

/** A folder of a skill, by a path of which the manifest has files below. */
interface ShownFolder {
  readonly folder: string
  readonly manifest: Manifest
}

export async function readFile (state: SkillState, path: string): Promise<ShownFile | ShownFolder> {
  const listed = await orSentence(() => state.manifest())
  const manifest = typeof listed === 'string' ? undefined : listed
  const folder = withoutEndSlashes(path)
  if (manifest !== undefined && (folder === '' || manifest.files.some((file) => file.path.startsWith(`${folder}/`)))) return { folder, manifest }
  const file = await state.open(path)
  const shown = file.kind === 'content' ? wholeFile(file.content) : await beginningOf(file)
  return { ...shown, mediaType: mediaType(path, shown.text !== undefined), manifest }
}

type FileText = Pick<ShownFile, 'bytes' | 'text' | 'encoding' | 'digest' | 'isCut'>

function wholeFile ({ bytes, text, digest }: FileContent): FileText {
  return { bytes: bytes.length, text: text?.content, encoding: text?.encoding, digest, isCut: false }
}

async function beginningOf ({ file, digest }: Extract<ServableFile, { kind: 'stream' }>): Promise<FileText> {
  try {
    const chunks: Buffer[] = []
    for await (const chunk of file.chunks(0, MAX_SHOWN_CHARACTERS - 1)) chunks.push(Buffer.from(chunk))
    const text = decodeText(withoutBrokenEnd(Buffer.concat(chunks)))
    return { bytes: Number(file.stats.size), text: text?.content, encoding: text?.encoding, digest, isCut: true }
  } finally {
    await file.close()
  }
}

/** A cut may lie inside of a character: what follows the last line end is left out, or else the beginning of one in UTF-8. */
function withoutBrokenEnd (bytes: Buffer): Buffer {
  const mark = bytes.toString('latin1', 0, 2)
  if (mark === '\xff\xfe' || mark === '\xfe\xff') return withoutHalfPair(bytes, mark === '\xff\xfe' ? 1 : 0)
  const end = bytes.lastIndexOf(0x0a)
  if (end !== -1) return bytes.subarray(0, end + 1)
  let start = bytes.length - 1
  while (start > bytes.length - MAX_UTF8_BYTES && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--
  return (bytes[start] ?? 0) >= 0xc0 ? bytes.subarray(0, start) : bytes
}

/**
 * The same in UTF-16.
 * @param high which byte of a unit is the high one
 */
function withoutHalfPair (bytes: Buffer, high: 0 | 1): Buffer {
  const end = bytes.length - bytes.length % 2
  const isHalf = ((bytes[end - 2 + high] ?? 0) & 0xfc) === 0xd8
  return bytes.subarray(0, isHalf ? end - 2 : end)
}

/** What can be said instead of content that cannot be read. A skill that changed meanwhile is read again as a whole. */
async function orSentence<T> (read: () => T | Promise<T>): Promise<T | string> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof SkillError) || error.code === 'skill_changing' || error.code === 'skill_not_found') throw error
    return error.message
  }
}
