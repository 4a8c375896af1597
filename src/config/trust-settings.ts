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
    meaning: 'serve only the revisions that this file names, `skillserve lock` writes it; the flag alone means `skills.lock`, and `--locked=FILE` another file',
    section: 'trust'
  },
  /** The trust file as an absolute path. */
  trustFile: {
    argument: '--trust FILE',
    variable: 'TRUST_FILE',
    parse: parseFolder,
    mustBe: 'a file',
    meaning: 'whose signatures count, and for which folders they are needed',
    section: 'trust'
  }
} as const satisfies Readonly<Record<string, Setting>>
