import { dirname } from 'node:path'
import { quote } from '../format/findings.ts'
import { printable } from '../ground/text.ts'
import type { SkippedEntry } from './scan-root.ts'

/**
 * Why an entry of a folder of skills is none of its skills, as a sentence without a full stop. None for what a .skillignore
 * names: that is left out on purpose.
 * @param remedy what helps against a link that leads out of the folder
 */
export function describeSkipped ({ name, reason, target = '' }: SkippedEntry, remedy = (target: string) => `${allowingSetting(target)} allows it`): readonly string[] {
  switch (reason) {
    case 'outside': return [`${quote(name)} is left out, since the link leads out of the folder: ${printable(remedy(target))}`]
    case 'nothing': return [`${quote(name)} is left out, since the link leads to no folder`]
    case 'unknown': return [`${quote(name)} is left out, since the disk that the link leads to does not answer, or fails`]
    case 'unsafe_name': return [`${quote(name)} is left out, since no skill has such a name`]
    case 'ignored': return []
  }
}

/** The setting that would allow a link to a folder. */
export function allowingSetting (target = ''): string {
  return `--allow-links ${dirname(target)}`
}
