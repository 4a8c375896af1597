/**
 * Writes the OpenAPI document of the service to openapi/openapi.yaml and openapi/openapi.json, or into FOLDER. With
 * `--check` it writes nothing, and fails when a file is not what the routes say.
 *
 *   tsx scripts/openapi.ts [--check] [FOLDER]
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createDocument } from './openapi/document.ts'

const DEFAULT_FOLDER = fileURLToPath(new URL('../openapi', import.meta.url))

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
const folder = positionals[0] ?? DEFAULT_FOLDER
const { yaml, json } = await createDocument()

if (!values.check) mkdirSync(folder, { recursive: true })
for (const [name, text] of [['openapi.yaml', yaml], ['openapi.json', json]] as const) {
  const file = join(folder, name)
  const shown = relative(process.cwd(), file)
  if (!values.check) {
    writeFileSync(file, text)
    console.log(`${shown} written`)
    continue
  }
  const written = readOrNothing(file)
  if (written === text) continue
  console.error(`${shown} is not what the routes say, from line ${firstDifference(text, written)} on: run \`npm run openapi\` and commit the file`)
  process.exitCode = 1
}
