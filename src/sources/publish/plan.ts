import { createHash } from 'node:crypto'
import type { FoundSkill } from '../../core/layout/layout.ts'
import { forEachInSlices } from '../../core/shared/async.ts'
import { compareCodePoints } from '../../core/shared/text.ts'
import { SourceError } from '../source-error.ts'
import { MAX_FILE_BYTES, MAX_LINK_BYTES, MAX_NAME_BYTES, MAX_PUBLISHED_BYTES } from './limits.ts'
import { quotePath, type SourceEntry, type SourceTree } from './source-tree.ts'

type SkillFiles = ReadonlyArray<{ readonly path: string, readonly entry: SourceEntry }>

export interface SkillToWrite {
  readonly digest: string
  readonly name: string
  readonly files: SkillFiles
}

/** Of each skill, by name. */
interface Known {
  readonly listed: ReadonlyMap<string, string>
  readonly sizes: ReadonlyMap<string, number>
}

interface Plan extends Known {
  /** Those that may be others than before. */
  readonly skills: readonly SkillToWrite[]
}

interface PlanOptions {
  /** Names of the skills that may be others; undefined: all may. */
  readonly only?: ReadonlySet<string> | undefined
  readonly prefix: string
  readonly where: string
}

/**
 * What will be published.
 * @throws SourceError for what no disk can hold, or what is too large
 */
export async function planOf (tree: SourceTree, found: readonly FoundSkill[], before: Known, { only, prefix, where }: PlanOptions): Promise<Plan> {
  const listed = only === undefined ? new Map<string, string>() : new Map(before.listed)
  const sizes = only === undefined ? new Map<string, number>() : new Map(before.sizes)
  const skills: SkillToWrite[] = []
  await forEachInSlices(found, ({ name: foundName, path }) => {
    if (only?.has(foundName) === false) return
    const name = prefix + foundName
    const files = tree.below(path).sort((a, b) => compareCodePoints(a.path, b.path))
    const tooLarge = files.find(({ entry }) => entry.size > MAX_FILE_BYTES)
    const unwritable = files.find(isUnwritable)
    if (unwritable !== undefined) throw new SourceError('refused_tree', `${where} is refused: no disk can hold ${quotePath(unwritable.path)} in the skill ${quotePath(path)}`)
    if (tooLarge !== undefined) throw new SourceError('too_large', `${where} is refused: ${quotePath(tooLarge.entry.path)} is larger than ${MAX_FILE_BYTES} bytes`)
    sizes.set(name, files.reduce((sum, { entry }) => sum + entry.size, 0))
    const digest = digestOf(name, files)
    listed.set(name, digest)
    skills.push({ digest, name, files })
  })
  if ([...sizes.values()].reduce((sum, size) => sum + size, 0) > MAX_PUBLISHED_BYTES) throw new SourceError('too_large', `${where} is refused: its skills are larger than ${MAX_PUBLISHED_BYTES} bytes together`)
  return { listed, sizes, skills }
}

/** Whether a name is longer than file systems have them, or a link leads to what is no path. */
export function isUnwritable ({ path, entry: { kind, target = '' } }: SkillFiles[number]): boolean {
  if (path.split('/').some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) return true
  return kind === 'link' && (target === '' || target.includes('\0') || Buffer.byteLength(target) > MAX_LINK_BYTES)
}

/** Names a folder by its content, and by the skill's name: two skills of one content are two folders. */
function digestOf (name: string, files: SkillFiles): string {
  const digest = createHash('sha256').update(name)
  for (const { path, entry } of files) if (entry.kind !== 'submodule') digest.update(`\0${entry.kind}\0${path}\0${entry.kind === 'link' ? entry.target ?? '' : entry.id}`)
  return digest.digest('hex').slice(0, 40)
}
