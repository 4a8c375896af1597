/**
 * Writes the OpenAPI document of the service to openapi/openapi.yaml, or to FILE; with `--check` writes nothing and
 * fails when the file is not what the routes say.
 *
 *   tsx scripts/openapi.ts [--check] [FILE]
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { buildApp } from '../src/app.ts'
import { createSkillManager } from '../src/core/skill-manager.ts'
import { readPackageVersion } from '../src/cli/package-version.ts'
import { createToolRegistry } from '../src/tools/registry.ts'
import { createTools } from '../src/tools/tools.ts'

const DEFAULT_FILE = fileURLToPath(new URL('../openapi/openapi.yaml', import.meta.url))

/** The document as YAML. It depends on the routes alone: no skills are needed, and no port. */
async function renderDocument (): Promise<string> {
  const skills = createSkillManager({ projectRoots: [], watcher: false })
  const registry = createToolRegistry(createTools())
  const app = await buildApp({ skills, registry, logger: pino({ level: 'silent' }), version: readPackageVersion(), host: '127.0.0.1' })
  try {
    return (await app.inject('/openapi.yaml')).payload
  } finally {
    await app.close()
  }
}

function readOrNothing (file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** Number of the first line that differs, from 1. */
function firstDifference (a: string, b: string): number {
  const lines = b.split('\n')
  return a.split('\n').findIndex((line, index) => line !== lines[index]) + 1 || lines.length
}

const { values, positionals } = parseArgs({ options: { check: { type: 'boolean', default: false } }, allowPositionals: true })
const file = positionals[0] ?? DEFAULT_FILE
const shown = relative(process.cwd(), file)
const document = await renderDocument()

if (!values.check) {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, document)
  console.log(`${shown} written`)
} else {
  const written = readOrNothing(file)
  if (written !== document) {
    console.error(`${shown} is not what the routes say, from line ${firstDifference(document, written)} on: run \`npm run openapi\` and commit the file`)
    process.exitCode = 1
  }
}
