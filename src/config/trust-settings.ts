import { parseFolder } from './parse.ts'
import type { Setting } from './setting.ts'

/** Which states of skills are served. */
export const TRUST_SETTINGS = {
  /** The lock as an absolute path. */
  lockFile: {
    argument: '--locked [FILE]',
    variable: 'LOCKED',
    alone: 'skills.lock',
    parse: parseFolder,
    mustBe: 'a file',
    meaning: 'serve only the revisions that this file names, `skillserve lock` writes it; the flag alone means `skills.lock`',
    section: 'trust'
  }
} as const satisfies Readonly<Record<string, Setting>>
