import { basename } from 'node:path/posix'
import { mediaType } from '../core/read/media-type.ts'
import type { Manifest } from '../core/shared/skill.ts'
import type { SkillState } from '../core/revisions/state.ts'
import { SkillError } from '../core/shared/errors.ts'
import { MAIN_FILE } from '../http/problem.ts'
import { withoutEndSlashes } from '../core/shared/text.ts'
import { type CatalogEntry, describeState } from '../listing/entry.ts'
import { type EntryVerdicts, type Validator, TARGET_NAMES, type TargetVerdict } from '../verdicts/index.ts'

/** An entry of the catalog, and what every client does with the skill. */
export type ValidatedSkill = CatalogEntry & EntryVerdicts & { readonly targets: readonly TargetVerdict[] }

/** What the page of a skill shows, of one state of it. */
export interface ShownSkill {
  readonly entry: ValidatedSkill
  /** Undefined when the files cannot be listed. */
  readonly manifest: Manifest | undefined
  /** Path of the main file, `SKILL.md` when there is none. */
  readonly mainFile: string
  /** Undefined when it cannot be read as text; `problem` says why, without a full stop. */
  readonly main: string | undefined
  readonly problem: string | undefined
}

export async function readSkill (state: SkillState, validate: Validator): Promise<ShownSkill> {
  // Chosen clients decide on the severities of findings: the page shows those of the catalog.
  const entry = await describeState(state, async (all) =>
    ({ ...await validate(all), targets: (await validate(all, TARGET_NAMES)).targets ?? [] }))
  const mainFile = basename(state.skill.metadata.path)
  const manifest = entry.revision === null ? undefined : await state.manifest()
  const content = await orSentence(() => state.mainFile())
  const shown = { entry, manifest, mainFile, main: undefined, problem: undefined }
  if (typeof content === 'string') return { ...shown, problem: content }
  const { utf8 } = content
  return utf8 === undefined ? { ...shown, problem: `${mainFile} is not UTF-8` } : { ...shown, main: utf8 }
}

/** What the page of a file shows. */
export interface ShownFile {
  readonly mediaType: string
  /** Undefined for a file that is not text, or has more than 10 MiB. */
  readonly text: string | undefined
  readonly encoding: string | undefined
  /** Undefined for a file that is too large. */
  readonly bytes: number | undefined
  readonly digest: string | undefined
  /** Undefined when the files cannot be listed. */
  readonly manifest: Manifest | undefined
}

/** A folder of a skill: a path with files of the manifest below it. */
interface ShownFolder {
  readonly folder: string
  readonly manifest: Manifest
}

export async function readFile (state: SkillState, path: string): Promise<ShownFile | ShownFolder> {
  const listed = await orSentence(() => state.manifest())
  const manifest = typeof listed === 'string' ? undefined : listed
  const folder = withoutEndSlashes(path)
  const isFolder = folder === '' || manifest?.files.some((file) => file.path.startsWith(`${folder}/`))
  if (manifest !== undefined && isFolder) return { folder, manifest }
  const shown = await readContent(state, path)
  return { ...shown, mediaType: mediaType(path, shown.text !== undefined), manifest }
}

async function readContent (state: SkillState, path: string): Promise<Omit<ShownFile, 'mediaType' | 'manifest'>> {
  try {
    const { bytes, text, digest } = await state.file(path)
    return { bytes: bytes.length, text: text?.content, encoding: text?.encoding, digest }
  } catch (error) {
    if (!(error instanceof SkillError) || error.code !== 'file_too_large') throw error
    return { bytes: undefined, text: undefined, encoding: undefined, digest: undefined }
  }
}

/** Returns the error message if the content cannot be read; rethrows if the skill changed or is gone. */
async function orSentence<T> (read: () => T | Promise<T>): Promise<T | string> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof SkillError) || error.code === 'skill_changing' || error.code === 'skill_not_found') {
      throw error
    }
    return error.message.replace(MAIN_FILE, 'SKILL.md')
  }
}
