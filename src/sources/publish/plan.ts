import { createHash } from 'node:crypto'
import type { FoundSkill } from '../../layout/layout.ts'
import { MAX_FILE_BYTES, MAX_PUBLISHED_BYTES } from '../../core/shared/limits.ts'
import { quotePath } from '../../core/shared/paths.ts'
import { SourceError } from '../source-error.ts'
import { isUnwritable, type SourceEntry, type SourceTree } from './source-tree.ts'

/** A skill that is to be published. */
export interface PublishedSkill {
  readonly name: string
  /** Of the name and all files: two skills of one content are two folders. */
  readonly digest: string
  /** Sorted by path. Submodules are not written. */
  readonly files: ReadonlyArray<{ readonly path: string, readonly entry: SourceEntry }>
}

export function publishedSkill (name: string, files: PublishedSkill['files']): PublishedSkill {
  const hash = createHash('sha256').update(name)
  for (const { path, entry: { kind, target, id } } of files) {
    if (kind !== 'submodule') hash.update(`\0${kind}\0${path}\0${kind === 'link' ? target ?? '' : id}`)
  }
  return { name, digest: hash.digest('hex').slice(0, 40), files }
}

/**
 * The skills that were found, with their files.
 * @param where names the state in sentences
 * @throws SourceError for what no disk can hold, or what is too large
 */
export async function planOf (
  tree: SourceTree, found: readonly FoundSkill[], { prefix, where }: { readonly prefix: string, readonly where: string }
): Promise<PublishedSkill[]> {
  const refuse = (code: 'refused_tree' | 'too_large', problem: string): never => {
    throw new SourceError(code, `${where} is refused: ${problem}`)
  }
  let bytes = 0
  const skills: PublishedSkill[] = []
  for (const { name, path } of found) {
    const files = await tree.below(path)
    for (const { entry } of files) {
      const file = quotePath(entry.path)
      if (isUnwritable(entry)) refuse('refused_tree', `no disk can hold ${file}`)
      if (entry.size > MAX_FILE_BYTES) refuse('too_large', `${file} is larger than ${MAX_FILE_BYTES} bytes`)
      bytes += entry.size
    }
    if (bytes > MAX_PUBLISHED_BYTES) refuse('too_large', `its skills have more than ${MAX_PUBLISHED_BYTES} bytes`)
    skills.push(publishedSkill(prefix + name, files))
  }
  return skills
}
