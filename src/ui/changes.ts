import { isMainFile } from '../core/format/main-files.ts'
import type { Manifest } from '../core/shared/skill.ts'
import type { SkillState } from '../core/revisions/state.ts'
import { RevisionChangedError, SkillError } from '../core/shared/errors.ts'
import type { View } from '../core/view.ts'
import { renderDiff } from './markup/diff.ts'
import type { Html } from './markup/html.ts'

/** Files whose texts are compared, and the longest of them, in UTF-16 code units. */
const MAX_COMPARED_FILES = 20
const MAX_COMPARED_CHARACTERS = 65_536

export interface FileChange {
  readonly kind: 'added' | 'removed' | 'changed'
  readonly path: string
  /** What differs in a changed file; absent for large files and those beyond the first MAX_COMPARED_FILES. */
  readonly difference?: Html | undefined
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
export async function readChanges (
  skills: Pick<View, 'read' | 'at' | 'keptRevisions'>, name: string, wanted: string | undefined
): Promise<Changes> {
  const after = await skills.read(name, (state) => state.manifest())
  const present = after.revision
  const revisions = skills.keptRevisions(name).filter((revision) => revision !== present)
  const from = wanted ?? revisions[0]
  if (from === undefined || from === present) {
    return { present, revisions, from, files: from === undefined ? undefined : [] }
  }
  try {
    const before = await skills.at(from).read(name, (state) => state.manifest())
    const changes = compare(before, after)
    const paths = changes.filter(({ kind }) => kind === 'changed').slice(0, MAX_COMPARED_FILES).map(({ path }) => path)
    const textsIn = (revision: string) => skills.at(revision).read(name, (state) => readTexts(state, paths))
    const [old, now] = [await textsIn(from), await textsIn(present)]
    const files = changes.map((change) => {
      const [oldText, newText] = [old.get(change.path), now.get(change.path)]
      const isCompared = oldText !== undefined && newText !== undefined
      return { ...change, difference: isCompared ? renderDiff(oldText, newText) : undefined }
    })
    return { present, revisions, from, files }
  } catch (error) {
    if (error instanceof RevisionChangedError) return { present, revisions, from, files: undefined }
    throw error
  }
}

function compare (before: Manifest, after: Manifest): readonly FileChange[] {
  const old = new Map(before.files.map((file) => [file.path, file.digest]))
  const now = new Map(after.files.map((file) => [file.path, file.digest]))
  const paths = [...new Set([...now.keys(), ...old.keys()])].filter((path) => old.get(path) !== now.get(path))
  // The main file decides when a model picks the skill.
  return paths.toSorted((a, b) => Number(isMainFile(b)) - Number(isMainFile(a))).map((path) =>
    ({ path, kind: !old.has(path) ? 'added' : now.has(path) ? 'changed' : 'removed' }))
}

async function readTexts (state: SkillState, paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>()
  for (const path of paths) {
    try {
      const { text } = await state.file(path)
      if (text !== undefined && text.content.length <= MAX_COMPARED_CHARACTERS) texts.set(path, text.content)
    } catch (error) {
      // A file that is too large or not readable cannot be compared.
      if (!(error instanceof SkillError) || error.code === 'skill_changing' || error instanceof RevisionChangedError) {
        throw error
      }
    }
  }
  return texts
}
