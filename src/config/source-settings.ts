import { LAYOUTS } from '../core/layout/layout.ts'
import { parseFolder } from './parse.ts'
import type { Setting } from './setting.ts'

/** Settings of sources that are no plain folders. */
export const SOURCE_SETTINGS = {
  /** Absolute path. */
  configFile: {
    argument: '--config FILE',
    variable: 'CONFIG_FILE',
    parse: parseFolder,
    mustBe: 'a file',
    meaning: 'YAML or JSON file with sources and their settings; they come behind those of `DIR...`',
    section: 'configuration-file'
  },
  /** Absolute path. */
  stateDir: {
    argument: '--state-dir DIR',
    variable: 'STATE_DIR',
    parse: parseFolder,
    mustBe: 'a folder',
    meaning: 'where sources are fetched to; without it `skillserve` in the cache folder of the user',
    section: 'state-folder'
  },
  layout: {
    argument: '--layout LAYOUT',
    variable: 'LAYOUT',
    parse: (text) => LAYOUTS.find((layout) => layout === text),
    words: LAYOUTS,
    mustBe: `one of ${LAYOUTS.join(', ')}`,
    meaning: 'where skills lie in the sources of `DIR...`: `flat` (the default for folders), `single`, `tree`, `marketplace` or `auto` (the default for other sources)',
    section: 'layouts'
  }
} as const satisfies Readonly<Record<string, Setting>>
