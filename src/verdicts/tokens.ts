import { basename } from 'node:path/posix'
import { estimateTokenCount } from 'tokenx'
import { locateFrontmatter } from '../core/format/fences.ts'
import type { SkillMetadata } from '../core/shared/skill.ts'
import { bytesOf, type Subject } from './subject.ts'

/** Estimate of the tokens that a skill costs a model, rounded to two digits. */
export interface TokenEstimate {
  /** Name and description, which a list costs in each turn. */
  readonly listed: number
  /** Body, which counts once the skill is in use; null if SKILL.md cannot be read. */
  readonly body: number | null
  /** SKILL.md and all other text files: the most that it may cost. Null when the files are not known. */
  readonly all_files: number | null
  /** Method of the estimate. */
  readonly method: string
}

export const TOKEN_METHOD =
  'estimate by tokenx, for most texts within about 15 % of o200k; other files than SKILL.md by size'

/** Longest text that is counted whole, in characters. Counting 1 MiB of signs would block the event loop for 0.2 s. */
const MAX_COUNTED = 131_072

/** For files that are not read. */
const BYTES_PER_TOKEN = 4

/** Extensions of files that a model does not read as text. */
const BINARY = new RegExp('\\.(?:7z|a|avi|bin|bmp|bz2|class|db|dll|docx?|dylib|eot|exe|gif|gz|icns|ico|jar|jpe?g|mov|' +
  'mp[34]|o|odt|ogg|otf|pdf|png|pptx?|pyc|rar|so|sqlite\\d?|tar|tgz|tiff?|ttf|wasm|wav|webm|webp|woff2?|xlsx?|xz|zip|' +
  'zst)$', 'i')

/** Estimates the tokens of a skill in one state. */
export function estimateTokens (
  { skill: { metadata }, mainFile, files }: Pick<Subject, 'skill' | 'mainFile' | 'files'>
): TokenEstimate {
  const bodyStart = mainFile === undefined ? 0 : locateFrontmatter(mainFile).bodyStart
  const body = mainFile && countTokens(mainFile.toString('utf8', bodyStart))
  const head = mainFile === undefined ? 0 : countTokens(mainFile.toString('utf8', 0, bodyStart))
  const counted = mainFile && basename(metadata.path)
  const others = files?.filter(({ path }) => path !== counted && !BINARY.test(path))
  const most = head + (body ?? 0) + bytesOf({ files: others }) / BYTES_PER_TOKEN
  return {
    listed: roundTokens(listedTokens(metadata)),
    body: body === undefined ? null : roundTokens(body),
    all_files: files === undefined ? null : roundTokens(most),
    method: TOKEN_METHOD
  }
}

/** Estimates the tokens of a text; those of a long text from its beginning. */
function countTokens (text: string): number {
  const counted = text.slice(0, MAX_COUNTED)
  return estimateTokenCount(counted) * Math.max(1, text.length / MAX_COUNTED)
}

/** Estimates what a list of skills costs for one of them, not rounded. */
export function listedTokens ({ name, description }: Pick<SkillMetadata, 'name' | 'description'>): number {
  return estimateTokenCount(`${name}: ${description}`)
}

/** Rounds to two digits, so that nobody takes an estimate for a count. */
export function roundTokens (tokens: number): number {
  if (tokens < 100) return Math.round(tokens)
  const step = 10 ** (Math.floor(Math.log10(tokens)) - 1)
  return Math.round(tokens / step) * step
}
