import { posix } from 'node:path'
import type { FoundSkills, LeftOut } from '../../layout/layout.ts'
import type { SourceStatus } from '../../schemas/health.ts'
import type { SourceEntry, SourceFiles } from './source-tree.ts'

/** What the status says of a published state, next to its revision. */
export type LayoutReport = Pick<SourceStatus, 'layout' | 'left_out'>

/** How many of the things that were left out are named. */
const MAX_NAMED = 20
const LFS_POINTER = 'version https://git-lfs.github.com/spec/v1'
/** Sizes of such a pointer, in bytes, and names of files that people keep elsewhere. */
const isPointerSize = (size: number): boolean => size > 100 && size < 200
const BINARY = /\.(?:png|jpe?g|gif|pdf|zip|bin|mp4|ttf|otf|pptx|docx|xlsx|onnx|safetensors|psd|webp)$/i

export function reportOf ({ layout }: FoundSkills, leftOut: readonly LeftOut[]): LayoutReport {
  const all = [...new Map(leftOut.map((item) => [`${item.path}\n${item.reason}`, item])).values()]
  return { layout, ...all.length > 0 && { left_out: { count: all.length, first: all.slice(0, MAX_NAMED) } } }
}

/** Submodules, links out of the source, and files that another server has: a client would read something else. */
export async function brokenParts (files: SourceFiles, entries: Iterable<SourceEntry>): Promise<LeftOut[]> {
  const found: LeftOut[] = []
  for (const entry of entries) {
    const { path, kind, size } = entry
    if (kind === 'submodule') found.push({ path, reason: 'submodule' })
    else if (kind === 'link' && leadsOut(entry)) found.push({ path, reason: 'link_outside' })
    else if (kind === 'file' && isPointerSize(size) && BINARY.test(path)) {
      const head = (await files.read(entry)).subarray(0, LFS_POINTER.length)
      if (head.toString() === LFS_POINTER) found.push({ path, reason: 'lfs_pointer' })
    }
  }
  return found
}

function leadsOut ({ path, target = '/' }: SourceEntry): boolean {
  return target.startsWith('/') || posix.join(posix.dirname(path), target).split('/', 1)[0] === '..'
}

export function isReport (value: unknown): value is LayoutReport {
  return typeof value === 'object' && value !== null && 'layout' in value
}
