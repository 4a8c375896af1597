import { isMainFile } from '../core/format/main-files.ts'
import type { Manifest, ManifestFile } from '../core/shared/skill.ts'
import type { SkillState } from '../core/content/skill-state.ts'
import { RevisionChangedError, SkillError } from '../core/shared/errors.ts'
import type { SkillSource } from '../core/skill-source.ts'

/** Files whose texts are compared, and the longest of them, in UTF-16 code units. */
const MAX_COMPARED_FILES = 20
const MAX_COMPARED_CHARACTERS = 262_144

export interface Comparison {
  readonly before: string
  readonly after: string
}

export interface FileChange {
  readonly kind: 'added' | 'removed' | 'changed' | 'renamed'
  readonly path: string
  /** Of a renamed file. */
  readonly pathBefore?: string
  /** Both texts of a changed file; absent for other files, large ones, and those beyond the first MAX_COMPARED_FILES. */
  readonly texts?: Comparison | undefined
  /** Digests of both, which name the comparison. */
  readonly key: string
}

/** How a skill differs from a revision that it had. */
export interface Changes {
  readonly present: string
  /** Those that can be compared, the latest first. */
  readonly revisions: readonly string[]
  /** The one that was compared; undefined when none is kept. */
  readonly from: string | undefined
  /** Undefined when `from` is not kept. */
  readonly files: readonly FileChange[] | undefined
}

/**
 * @param wanted default: the latest revision before the present one
 * @throws {SkillError} as `read` when the skill is not there
 */
export async function readChanges (skills: Pick<SkillSource, 'read' | 'at' | 'keptRevisions'>, name: string, wanted: string | undefined): Promise<Changes> {
  const after = await skills.read(name, (state) => state.manifest())
  const present = after.revision
  const revisions = skills.keptRevisions(name).filter((revision) => revision !== present)
  const from = wanted ?? revisions[0]
  if (from === undefined) return { present, revisions, from, files: undefined }
  if (from === present) return { present, revisions, from, files: [] }
  try {
    const before = await skills.at(from).read(name, (state) => state.manifest())
    const changes = compare(before, after)
    const paths = changes.filter(({ kind }) => kind === 'changed').slice(0, MAX_COMPARED_FILES).map(({ path }) => path)
    const [textsBefore, textsAfter] = await Promise.all([from, present].map((revision) => skills.at(revision).read(name, (state) => readTexts(state, paths))))
    return { present, revisions, from, files: changes.map((change) => ({ ...change, texts: textsOf(change.path, textsBefore, textsAfter) })) }
  } catch (error) {
    if (error instanceof RevisionChangedError) return { present, revisions, from, files: undefined }
    throw error
  }
}

function compare (before: Manifest, after: Manifest): readonly FileChange[] {
  const old = new Map(before.files.map((file) => [file.path, file]))
  const now = new Set(after.files.map(({ path }) => path))
  const gone = new Set(before.files.filter(({ path }) => !now.has(path)))
  const goneByDigest = new Map<string, ManifestFile[]>()
  for (const file of gone) {
    const equal = goneByDigest.get(file.digest)
    if (equal === undefined) goneByDigest.set(file.digest, [file])
    else equal.push(file)
  }
  const changes: FileChange[] = []
  for (const { path, digest } of after.files) {
    const was = old.get(path)
    const moved = was === undefined ? goneByDigest.get(digest)?.shift() : undefined
    if (moved !== undefined) {
      gone.delete(moved)
      changes.push({ kind: 'renamed', path, pathBefore: moved.path, key: digest })
    } else if (was === undefined) changes.push({ kind: 'added', path, key: digest })
    else if (was.digest !== digest) changes.push({ kind: 'changed', path, key: `${was.digest} ${digest}` })
  }
  for (const { path, digest } of gone) changes.push({ kind: 'removed', path, key: digest })
  // The main file decides when a model picks the skill.
  return changes.toSorted((a, b) => Number(isMainFile(b.path)) - Number(isMainFile(a.path)))
}

async function readTexts (state: SkillState, paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>()
  for (const path of paths) {
    try {
      const { text } = await state.file(path)
      if (text !== undefined && text.content.length <= MAX_COMPARED_CHARACTERS) texts.set(path, text.content)
    } catch (error) {
      // Too large, or not readable: there is nothing to compare.
      if (!(error instanceof SkillError) || error.code === 'skill_changing' || error instanceof RevisionChangedError) throw error
    }
  }
  return texts
}

function textsOf (path: string, before: ReadonlyMap<string, string> | undefined, after: ReadonlyMap<string, string> | undefined): Comparison | undefined {
  const [old, now] = [before?.get(path), after?.get(path)]
  return old === undefined || now === undefined ? undefined : { before: old, after: now }
}
