/**
 * Writes the tables of the documents that come from the source: settings, metrics, codes of findings, targets,
 * and the lists of the example skill. A test tells when they differ.
 *
 *   npm run tables
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { MetricObject } from 'prom-client'
import { EXAMPLE_SKILL, withErrors } from './example-skill.ts'
import { withFindings, withTargets } from './finding-codes.ts'
import { FRONTMATTER_SCHEMAS } from './frontmatter-schemas.ts'
import type { Setting } from '../src/operator/setting.ts'
import { AccessFileSchema } from '../src/access/schema.ts'
import { ConfigFileSchema } from '../src/config/config-file.ts'
import { TrustFileSchema } from '../src/trust/trust-file.ts'
import { SETTINGS } from '../src/config/settings.ts'
import { createSkillManager } from '../src/core/skill-manager.ts'
import { AUDIT_EVENTS } from '../src/observe/reads.ts'
import { createMetrics } from '../src/observe/metrics.ts'

const ROOT = new URL('../', import.meta.url)

const SETTINGS_HEAD = '| Flag | Environment | Default | Meaning |\n|---|---|---|---|\n'
const SETTINGS_TABLE = /^\| Flag \| Environment \| Default \| Meaning \|\n(?:\|.*\n)+/m

const METRICS_HEAD = '| Metric and labels | Meaning |\n|---|---|\n'
const METRICS_TABLE = /^\| Metric and labels \| Meaning \|\n(?:\|.*\n)+/m

const EVENTS_HEAD = '| Event | Meaning |\n|---|---|\n'
const EVENTS_TABLE = /^\| Event \| Meaning \|\n(?:\|.*\n)+/m

/** The document with the tables of metrics and of audit events. */
export const OPERATIONS = 'docs/operations.md'

interface SettingsDocument {
  /** Relative path from the file to the folder of documents. */
  readonly base: string
  readonly hasSetting: (setting: Setting) => boolean
}

/** The settings that README shows: those that a new user sets first. */
const FIRST_SETTINGS: ReadonlySet<Setting> = new Set<Setting>([
  SETTINGS.skillsDirs, SETTINGS.host, SETTINGS.port, SETTINGS.logLevel, SETTINGS.accessFile
])

/** The documents with tables of settings. */
export const DOCUMENTS: Readonly<Record<string, SettingsDocument>> = {
  'README.md': { base: 'docs/', hasSetting: (setting) => FIRST_SETTINGS.has(setting) },
  'docs/configuration.md': { base: '', hasSetting: () => true }
}

/** The JSON Schemas of operators' files and of frontmatter, for editors, by document. */
export const FILE_SCHEMAS: Readonly<Record<string, object>> = {
  'openapi/access.schema.json': AccessFileSchema,
  'openapi/config.schema.json': ConfigFileSchema,
  'openapi/trust.schema.json': TrustFileSchema,
  ...FRONTMATTER_SCHEMAS
}

/** Returns the text of a JSON Schema. */
export function schemaDocument (schema: object): string {
  return `${JSON.stringify({ $schema: 'https://json-schema.org/draft/2020-12/schema', ...schema }, undefined, 2)}\n`
}

/** Returns a document with its generated tables. */
export function withTables (document: string, text: string): string {
  const settings = DOCUMENTS[document]
  if (settings === undefined || !SETTINGS_TABLE.test(text)) throw new Error(`${document} has no table of settings`)
  return text.replace(SETTINGS_TABLE, () => settingsTable(settings))
}

/** Returns docs/operations.md with its generated tables. */
export function withMetrics (text: string): string {
  if (!METRICS_TABLE.test(text)) throw new Error(`${OPERATIONS} has no table of metrics`)
  const events = Object.entries(AUDIT_EVENTS).map(([event, meaning]) => `| \`${event}\` | ${meaning} |\n`)
  return text
    .replace(METRICS_TABLE, () => METRICS_HEAD + metricsRows().join(''))
    .replace(EVENTS_TABLE, () => EVENTS_HEAD + events.join(''))
}

function metricsRows (): string[] {
  const { registry } = createMetrics({ skills: createSkillManager({ projectRoots: [] }), version: '' })
  // The types of prom-client leave out the labels.
  const all = registry.getMetricsAsArray() as Array<MetricObject & { readonly labelNames: readonly string[] }>
  return all.filter(({ name }) => !/^(?:nodejs|process)_/.test(name)).map(({ name, labelNames, help }) =>
    `| \`${name}${labelNames.length === 0 ? '' : `{${labelNames.join()}}`}\` | ${help} |\n`)
}

function settingsTable ({ base, hasSetting }: SettingsDocument): string {
  const rows = Object.values<Setting>(SETTINGS).filter(hasSetting).map((setting) => {
    const { argument, variable, default: fallback, meaning, more } = setting
    const flag = argument === undefined ? '' : `\`${argument}\` `
    const link = more === undefined ? '' : ` ([more](${base}${more}))`
    return `| ${flag}| \`${variable}\` | ${fallback === undefined ? 'none' : `\`${fallback}\``} | ${meaning}${link} |\n`
  })
  return SETTINGS_HEAD + rows.join('')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [document, schema] of Object.entries(FILE_SCHEMAS)) {
    writeFileSync(new URL(document, ROOT), schemaDocument(schema))
  }
  const parts: ReadonlyArray<readonly [document: string, write: (text: string) => string]> = [
    ...Object.keys(DOCUMENTS).map((document) => [document, (text: string) => withTables(document, text)] as const),
    [OPERATIONS, withMetrics],
    ['docs/rest.md', withErrors],
    ['docs/findings.md', withFindings],
    ['docs/validate.md', withTargets],
    ...Object.entries(EXAMPLE_SKILL)
  ]
  for (const [document, write] of parts) {
    const file = new URL(document, ROOT)
    const text = readFileSync(file, 'utf8')
    const written = write(text)
    if (written === text) continue
    writeFileSync(file, written)
    console.log(`${document} written`)
  }
}
