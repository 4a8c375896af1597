import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import { yieldIfNeeded } from '../../core/shared/async.ts'
import { MAX_FILE_BYTES, MAX_PUBLISHED_BYTES } from '../../core/shared/limits.ts'
import { quotePath } from '../../core/shared/paths.ts'
import type { FoundSkill, FoundSkills, LayoutOptions, LeftOut } from '../../layout/layout.ts'
import type { SourceStatus } from '../../schemas/health.ts'
import { SourceError } from '../source-error.ts'
import { isUnwritable, readFileOf, type SourceEntry, type SourceFiles, type SourceTree } from './source-tree.ts'

export interface PublishedSkill {
  readonly name: string
  /** Digest of the name and all files: two skills with equal files have two folders. */
  readonly digest: string
  /** Files, sorted by path. Submodules are not written. */
  readonly files: ReadonlyArray<{ readonly path: string, readonly entry: SourceEntry }>
}

export function publishedSkill (name: string, files: PublishedSkill['files']): PublishedSkill {
  const hash = createHash('sha256').update(name)
  for (const { path, entry: { kind, target, id } } of files) {
    if (kind !== 'submodule') hash.update(`\0${kind}\0${path}\0${kind === 'link' ? target ?? '' : id}`)
  }
  return { name, digest: hash.digest('hex').slice(0, 40), files }
}

/** Options of a layout, the prefix for names of skills, and the name of the state in errors. */
export type PlanOptions = LayoutOptions & { readonly prefix: string, readonly where: string }

/**
 * Collects the files of the skills that were found.
 * @throws SourceError for what no disk can hold, or what is too large
 */
export async function planOf (
  tree: SourceTree, found: readonly FoundSkill[], { prefix, where }: PlanOptions
): Promise<PublishedSkill[]> {
  const refuse = (code: 'refused_tree' | 'too_large', problem: string): never => {
    throw new SourceError(code, `${where} is refused: ${problem}`)
  }
  let bytes = 0
  const skills: PublishedSkill[] = []
  for (const { name, path } of found) {
    await yieldIfNeeded()
    const files = await tree.below(path)
    for (const { entry } of files) {
      bytes += entry.size
      if (isUnwritable(entry)) refuse('refused_tree', `no disk can store ${quotePath(entry.path)}`)
      if (entry.size > MAX_FILE_BYTES) {
        refuse('too_large', `${quotePath(entry.path)} is larger than ${MAX_FILE_BYTES} bytes`)
      }
    }
    if (bytes > MAX_PUBLISHED_BYTES) refuse('too_large', `its skills have more than ${MAX_PUBLISHED_BYTES} bytes`)
    skills.push(publishedSkill(prefix + name, files))
  }
  return skills
}

/** Most skipped entries that the status names. */
const MAX_NAMED = 20
const LFS_POINTER = 'version https://git-lfs.github.com/spec/v1'
const MAX_POINTER_BYTES = 200
/** Names of files that Git LFS typically stores elsewhere. */
const BINARY = /\.(?:png|jpe?g|gif|pdf|zip|bin|mp4|ttf|otf|pptx|docx|xlsx|onnx|safetensors|psd|webp)$/i

/** Returns what the status says of a search. */
export function reportOf (
  { layout }: FoundSkills, leftOut: readonly LeftOut[]
): Pick<SourceStatus, 'layout' | 'left_out'> {
  const all = [...new Map(leftOut.map((item) => [`${item.path}\n${item.reason}`, item])).values()]
  return { layout, ...all.length > 0 && { left_out: { count: all.length, first: all.slice(0, MAX_NAMED) } } }
}

/** Finds submodules, links out of the source, and files that another server has: a client would read something else. */
export async function brokenParts (files: SourceFiles, entries: Iterable<SourceEntry>): Promise<LeftOut[]> {
  const found: LeftOut[] = []
  for (const entry of entries) {
    const { path, kind, size } = entry
    if (kind === 'submodule') found.push({ path, reason: 'submodule' })
    else if (kind === 'link' && leadsOut(entry)) found.push({ path, reason: 'link_outside' })
    else if (kind === 'file' && size < MAX_POINTER_BYTES && BINARY.test(path)) {
      const head = (await readFileOf(files, entry)).subarray(0, LFS_POINTER.length)
      if (head.toString() === LFS_POINTER) found.push({ path, reason: 'lfs_pointer' })
    }
  }
  return found
}

function leadsOut ({ path, target = '/' }: SourceEntry): boolean {
  return target.startsWith('/') || posix.join(posix.dirname(path), target).split('/', 1)[0] === '..'
}
