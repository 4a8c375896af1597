import type { SkippedEntry } from '../core/roots/list-root.ts'
import { printable, quote } from '../core/shared/text.ts'
import { shellWord } from './shell-word.ts'

/** Reasons why an entry of a folder of skills is skipped. */
export const SKIPPED: Readonly<Record<SkippedEntry['reason'], string>> = {
  outside: 'the link leads out of the folder',
  nothing: 'the link leads to nothing that can be a skill',
  unknown: 'the disk that the link leads to does not answer, or fails',
  unsafe_name: "no skill has a name with '\\', '..', control characters, or bytes that are not UTF-8",
  ignored: 'the .skillignore of the folder names it'
}

/** Returns the reason and its remedy as a sentence; none for what a .skillignore leaves out on purpose. */
export function describeSkipped ({ name, reason, target = '' }: SkippedEntry): readonly string[] {
  if (reason === 'ignored') return []
  const setting = allowingSetting(target)
  const allowed = setting === undefined ? 'link to a folder below it, and allow that one' : `${setting} allows it`
  const remedy = reason === 'outside' ? `: ${printable(allowed)}` : ''
  return [`${quote(name)} is skipped, since ${SKIPPED[reason]}${remedy}`]
}

/** Returns the flag that would allow links to this folder alone; none for the root of the file system. */
export function allowingSetting (target: string): string | undefined {
  return target === '/' ? undefined : `--allow-links ${shellWord(target)}`
}
