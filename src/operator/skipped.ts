import type { SkippedEntry } from '../core/roots/list-root.ts'
import { printable, quote } from '../core/shared/text.ts'
import { shellWord } from './shell-word.ts'

/** Why an entry of a folder of skills is none of its skills. */
export const SKIPPED: Readonly<Record<SkippedEntry['reason'], string>> = {
  outside: 'the link leads out of the folder',
  nothing: 'the link leads to no folder that may be a skill',
  unknown: 'the disk that the link leads to does not answer, or fails',
  unsafe_name: "no skill has a name with '\\', '..', control characters, or bytes that are not UTF-8",
  ignored: 'the .skillignore of the folder names it'
}

/** The same as a sentence without a full stop. None for what is left out on purpose, by a .skillignore. */
export function describeSkipped ({ name, reason, target = '' }: SkippedEntry): readonly string[] {
  if (reason === 'ignored') return []
  const setting = allowingSetting(target)
  const allowed = setting === undefined ? 'let it lead to a folder below, and allow that one' : `${setting} allows it`
  const remedy = reason === 'outside' ? `: ${printable(allowed)}` : ''
  return [`${quote(name)} is left out, since ${SKIPPED[reason]}${remedy}`]
}

/** The setting that would allow a link to this folder alone, for a shell. None for the root of the file system. */
export function allowingSetting (target: string): string | undefined {
  return target === '/' ? undefined : `--allow-links ${shellWord(target)}`
}
