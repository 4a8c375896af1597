/**
 * Writes the tables of the documents that come from the source: the settings. A test tells when they differ.
 *
 *   npm run tables
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Setting } from '../src/config/setting.ts'
import { SETTINGS } from '../src/config/settings.ts'

const ROOT = new URL('../', import.meta.url)

const SETTINGS_HEAD = '| Flag | Environment | Default | Meaning |\n|---|---|---|---|\n'
const SETTINGS_TABLE = /^\| Flag \| Environment \| Default \| Meaning \|\n(?:\|.*\n)+/m

/** The documents with tables, and how each of them links to a heading of docs/configuration.md. */
export const DOCUMENTS: Readonly<Record<string, (heading: string) => string>> = {
  'README.md': (heading) => `docs/configuration.md#${heading}`,
  'docs/configuration.md': (heading) => `#${heading}`
}

/** A document's text as it should be. */
export function withTables (document: string, text: string): string {
  const link = DOCUMENTS[document]
  if (link === undefined || !SETTINGS_TABLE.test(text)) throw new Error(`${document} has no table of settings`)
  return text.replace(SETTINGS_TABLE, () => settingsTable(link))
}

function settingsTable (link: (heading: string) => string): string {
  const rows = Object.values<Setting>(SETTINGS).map(({ argument, variable, default: fallback, meaning, section }) => {
    const more = section === undefined ? '' : ` ([more](${link(section)}))`
    return `| ${argument === undefined ? '' : `\`${argument}\` `}| \`${variable}\` | ${fallback === undefined ? 'none' : `\`${fallback}\``} | ${meaning}${more} |\n`
  })
  return SETTINGS_HEAD + rows.join('')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const document of Object.keys(DOCUMENTS)) {
    const file = new URL(document, ROOT)
    const text = readFileSync(file, 'utf8')
    const written = withTables(document, text)
    if (written === text) continue
    writeFileSync(file, written)
    console.log(`${document} written`)
  }
}
