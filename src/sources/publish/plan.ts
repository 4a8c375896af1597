import type { FoundSkill } from '../../core/layout/layout.ts'
import { quotePath } from '../../core/shared/paths.ts'
import { compareCodePoints } from '../../core/shared/text.ts'
import { SourceError } from '../source-error.ts'
import { MAX_FILE_BYTES, MAX_LINK_BYTES, MAX_NAME_BYTES, MAX_PUBLISHED_BYTES } from '../../core/shared/limits.ts'
import type { PublishedSkill } from './publisher.ts'
import type { SourceTree } from './source-tree.ts'

/**
 * The skills that were found, with their files.
 * @param where names the state in sentences
 * @throws SourceError for what no disk can hold, or what is too large
 */
export function planOf (
  tree: SourceTree, found: readonly FoundSkill[], { prefix, where }: { readonly prefix: string, readonly where: string }
): PublishedSkill[] {
  let bytes = 0
  return found.map(({ name, path }) => {
    const files = tree.below(path).sort((a, b) => compareCodePoints(a.path, b.path))
    for (const file of files) {
      if (isUnwritable(file)) {
        const sentence = `no disk can hold ${quotePath(file.path)} in the skill ${quotePath(path)}`
        throw new SourceError('refused_tree', `${where} is refused: ${sentence}`)
      }
      const { size, path: place } = file.entry
      if (size > MAX_FILE_BYTES) throw tooLarge(where, `${quotePath(place)} is larger than ${MAX_FILE_BYTES} bytes`)
      bytes += size
    }
    if (bytes > MAX_PUBLISHED_BYTES) throw tooLarge(where, `its skills have more than ${MAX_PUBLISHED_BYTES} bytes`)
    return { name: prefix + name, files }
  })
}

function tooLarge (where: string, problem: string): SourceError {
  return new SourceError('too_large', `${where} is refused: ${problem}`)
}

/** Whether a name is longer than file systems have them, or a link leads to what is not a path. */
export function isUnwritable ({ path, entry: { kind, target = '' } }: PublishedSkill['files'][number]): boolean {
  if (path.split('/').some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) return true
  return kind === 'link' && (target === '' || target.includes('\0') || Buffer.byteLength(target) > MAX_LINK_BYTES)
}
