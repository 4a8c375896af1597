/**
 * Writes the OpenAPI document of the running app to openapi/openapi.yaml, or to FILE. With `--check` it writes nothing,
 * and fails when the file is not what the routes say.
 *
 *   tsx scripts/openapi.ts [--check] [FILE]
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { buildApp } from '../src/app.ts'
import { readPackageVersion } from '../src/operator/package-files.ts'
import { createSkillManager } from '../src/core/skill-manager.ts'
import { createToolRegistry } from '../src/tools/registry.ts'
import { createTools } from '../src/tools/tools.ts'

const { values, positionals } = parseArgs({
  options: { check: { type: 'boolean', default: false } }, allowPositionals: true
})
const file = positionals[0] ?? fileURLToPath(new URL('../openapi/openapi.yaml', import.meta.url))

const skills = createSkillManager({ projectRoots: [], watcher: false })
const app = await buildApp({
  skills,
  registry: createToolRegistry(createTools()),
  logger: pino({ level: 'silent' }),
  version: readPackageVersion(),
  host: '127.0.0.1'
})
await app.ready()
const document = app.swagger({ yaml: true })
await app.close()
await skills.close()

const shown = relative(process.cwd(), file)
if (!values.check) {
  writeFileSync(file, document)
  console.log(`${shown} written`)
} else if (readFileSync(file, 'utf8') !== document) {
  console.error(`${shown} is not what the routes say: run \`npm run openapi\` and commit the file`)
  process.exitCode = 1
}
