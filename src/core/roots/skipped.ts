import { printable, quote, shellWord } from '../shared/text.ts'
import type { SkippedEntry } from './list-root.ts'

/**
 * Why an entry of a folder of skills is none of its skills, as a sentence without a full stop. None for what a
 * .skillignore names: that is left out on purpose.
 */
export function describeSkipped ({ name, reason, target = '' }: SkippedEntry): readonly string[] {
  switch (reason) {
    case 'outside': return [
      `${quote(name)} is left out, since the link leads out of the folder: ${printable(allowedBy(target))}`
    ]
    case 'nothing': return [`${quote(name)} is left out, since the link leads to no folder`]
    case 'unknown': return [
      `${quote(name)} is left out, since the disk that the link leads to does not answer, or fails`
    ]
    case 'unsafe_name': return [`${quote(name)} is left out, since no skill has such a name`]
    case 'ignored': return []
  }
}

/**
 * The setting that would allow a link to a folder, for a shell: it names that folder alone. None for the root of the
 * file system.
 */
export function allowingSetting (target: string): string | undefined {
  return target === '/' ? undefined : `--allow-links ${shellWord(target)}`
}

function allowedBy (target: string): string {
  const setting = allowingSetting(target)
  return setting === undefined ? 'let it lead to a folder below, and allow that one' : `${setting} allows it`
}
