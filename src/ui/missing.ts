import { SkillError } from '../core/shared/errors.ts'
import { nearest } from '../core/shared/nearest.ts'
import type { SkillSource, SkillService } from '../core/service.ts'
import type { Addresses } from './addresses.ts'
import type { Missing } from './pages/problem.ts'
import { baseName } from '../core/shared/paths.ts'

const MAX_COMPARED_CHARACTERS = 128

/** The skill that somebody may have meant. */
export function missingSkill (
  error: unknown, skills: Pick<SkillService, 'namesNow'>, name: string, addresses: Addresses
): Missing | undefined {
  if (!(error instanceof SkillError) || error.code !== 'skill_not_found') return undefined
  const near = nearestOf(name, skills.namesNow())
  return { query: name, near: near === undefined ? undefined : { label: near, address: addresses.skill(near) } }
}

/** The file of the skill that somebody may have meant. */
export async function missingFile (
  error: unknown, skills: Pick<SkillSource, 'manifest'>, name: string, path: string, addresses: Addresses
): Promise<Missing | undefined> {
  if (!(error instanceof SkillError) || error.code !== 'file_not_found') return undefined
  const paths = await skills.manifest(name).then(({ files }) => files.map((file) => file.path), () => [])
  const base = baseName(path)
  const near = paths.find((each) => baseName(each) === base) ?? nearestOf(path, paths)
  return { near: { label: near ?? 'all files of the skill', address: addresses.file(name, near ?? '') } }
}

function nearestOf (word: string, words: readonly string[]): string | undefined {
  if (word.length > MAX_COMPARED_CHARACTERS) return undefined
  return nearest(word, words.filter((each) => each.charAt(0) === word.charAt(0)))
}
