import type { FastifyRequest } from 'fastify'
import { SkillError, unlessRefused } from '../core/shared/errors.ts'
import { nearest } from '../core/shared/nearest.ts'
import type { View } from '../core/view.ts'

/** A longer word, or more candidates, would cost more time than the comfort is worth. */
const MAX_CHARACTERS = 100
const MAX_CANDIDATES = 2_000

/** Returns the skill or file that a request for one that is not there most likely means, of those in `skills`. */
export async function suggestName (
  error: unknown, { params }: FastifyRequest, skills: () => View
): Promise<string | undefined> {
  const { name, '*': path = '' } = (params ?? {}) as { readonly name?: string, readonly '*'?: string }
  if (!(error instanceof SkillError) || name === undefined) return undefined
  if (error.code === 'skill_not_found') return nearestOf(name, skills().indexedNames())
  if (error.code !== 'file_not_found') return undefined
  const snapshot = await unlessRefused(() => skills().read(name, (state) => state.listedSnapshot()))
  return snapshot && nearestOf(path, snapshot.manifest.files.map(({ path }) => path))
}

function nearestOf (word: string, words: readonly string[]): string | undefined {
  if (word.length > MAX_CHARACTERS) return undefined
  const near = words.filter(({ length }) => Math.abs(length - word.length) <= 2)
  return near.length > MAX_CANDIDATES ? undefined : nearest(word, near)
}
