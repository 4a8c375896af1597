import { dirname } from 'node:path'
import { printable, quote, shellWord } from '../shared/text.ts'
import type { SkippedEntry } from './scan-root.ts'

/**
 * Why an entry of a folder of skills is none of its skills, as a sentence without a full stop. None for what a .skillignore
 * names: that is left out on purpose.
 * @param remedy what helps against a link that leads out of the folder
 */
export function describeSkipped ({ name, reason, target = '' }: SkippedEntry, remedy = allowedBy): readonly string[] {
  switch (reason) {
    case 'outside': return [`${quote(name)} is left out, since the link leads out of the folder: ${printable(remedy(target))}`]
    case 'nothing': return [`${quote(name)} is left out, since the link leads to no folder`]
    case 'unknown': return [`${quote(name)} is left out, since the disk that the link leads to does not answer, or fails`]
    case 'unsafe_name': return [`${quote(name)} is left out, since no skill has such a name`]
    case 'ignored': return []
  }
}

/** The setting that would allow a link to a folder, for a shell; none for one that lies in the root of the file system. */
export function allowingSetting (target = ''): string | undefined {
  const folder = dirname(target)
  return folder === dirname(folder) ? undefined : `--allow-links ${shellWord(folder)}`
}

function allowedBy (target: string): string {
  const setting = allowingSetting(target)
  return setting === undefined ? '--allow-links would have to name all of the disk, so let it lead to a folder below another one' : `${setting} allows it`
}
