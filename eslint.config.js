import { readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import neostandard from 'neostandard'
import tseslint from 'typescript-eslint'

/**
 * The floors of src, the lowest first: a file imports from its own room and from floors below. Rooms of one floor are
 * siblings, and none imports another. Names are prefixes of paths below src; the longest one that fits counts.
 */
const FLOORS = [
  ['core/shared/'],
  ['core/format/'],
  ['core/disk/'],
  ['core/files/'],
  ['core/layout/'],
  ['core/watch/'],
  ['core/roots/'],
  ['core/catalog/'],
  ['core/content/'],
  ['core/clients/'],
  ['core/search/'],
  ['core/skill-source.ts'],
  ['core/skills-at-revision.ts'],
  ['core/refresher.ts', 'core/catalog-log.ts'],
  ['core/shared-parts.ts'],
  ['core/skill-manager-options.ts'],
  ['core/wiring.ts'],
  ['core/root-skills.ts'],
  ['core/views/'],
  ['core/skill-manager.ts'],
  ['core/listing/', 'core/events/'],
  ['config/setting.ts'],
  ['config/files/'],
  ['verdicts/'],
  ['schemas/'],
  ['tools/'],
  ['library/'],
  ['log.ts'],
  ['http/'],
  ['sources/'],
  ['trust/'],
  ['openapi/', 'plugins/', 'mcp/', 'observe/', 'limits/'],
  ['routes/', 'well-known/', 'ui/', 'validate/'],
  ['app-options.ts'],
  ['app.ts', 'export/'],
  ['config/'],
  ['trust/', 'access/', 'listen.ts'],
  ['server.ts', 'index.ts'],
  ['cli/']
]

/** What the script of the pages uses. */
const BROWSER_GLOBALS = ['addEventListener', 'EventSource', 'getSelection', 'history', 'HTMLInputElement', 'location', 'XMLHttpRequest']

const SRC = resolve(import.meta.dirname, 'src')

/** The room that a file is in, and the number of its floor. */
function placeOf (path) {
  let found
  for (const [floor, rooms] of FLOORS.entries()) {
    for (const room of rooms) if (path.startsWith(room) && room.length > (found?.room.length ?? 0)) found = { room, floor }
  }
  return found
}

const importsOf = new Map()

/** Whether a file leads to another by its imports, those of types included. The floors keep circles within a room. */
function leadsTo (from, target, seen = new Set()) {
  if (from === target) return true
  if (seen.has(from) || placeOf(relative(SRC, from))?.room !== placeOf(relative(SRC, target))?.room) return false
  seen.add(from)
  if (!importsOf.has(from)) importsOf.set(from, [...readFileSync(from, 'utf8').matchAll(/ from '(\.[^']+\.ts)'/g)].map(([, path]) => resolve(dirname(from), path)))
  return importsOf.get(from).some((path) => leadsTo(path, target, seen))
}

const floors = {
  meta: { type: 'problem', schema: [] },
  create (context) {
    const from = placeOf(relative(SRC, context.filename))
    function check (node) {
      const specifier = node.source?.value
      if (typeof specifier !== 'string' || !specifier.startsWith('.')) return
      const path = relative(SRC, resolve(context.filename, '..', specifier))
      const to = placeOf(path)
      if (from === undefined || to === undefined) context.report({ node, message: `${path} is on no floor: add it to FLOORS in eslint.config.js` })
      else if (to.room !== from.room && to.floor >= from.floor) context.report({ node, message: `${from.room} must not import from ${to.room}: arrows point down only` })
      else if (leadsTo(resolve(SRC, path), context.filename)) context.report({ node, message: `${path} leads back to this file: imports form no circle, those of types neither` })
    }
    return { ImportDeclaration: check, ExportNamedDeclaration: check, ExportAllDeclaration: check, ImportExpression: check }
  }
}

function noImports (files, patterns, message) {
  return { files, rules: { 'no-restricted-imports': ['error', { patterns: [{ group: patterns, message }] }] } }
}

export default [
  { ignores: ['dist/', '.tap/', 'coverage/', 'skills/**'] },
  ...neostandard({ ts: true }),
  // `void` says that a promise is left to itself on purpose (no-floating-promises).
  { rules: { 'no-void': ['error', { allowAsStatement: true }] } },
  {
    files: ['src/**/*.ts'],
    plugins: { '@typescript-eslint': tseslint.plugin, house: { rules: { floors } } },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'house/floors': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-explicit-any': 'error'
    }
  },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts', 'examples/**/*.ts'],
    plugins: { '@typescript-eslint': tseslint.plugin },
    rules: { '@typescript-eslint/no-explicit-any': 'error' }
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/cli/main.ts'],
    rules: { 'no-restricted-properties': ['error', { object: 'process', property: 'env', message: 'the command line hands the environment down' }] }
  },
  {
    files: ['src/ui/public/*.js'],
    languageOptions: { globals: Object.fromEntries(BROWSER_GLOBALS.map((name) => [name, 'readonly'])) }
  },
  noImports(['src/core/**/*.ts'], ['fastify', 'fastify-plugin', '@fastify/*', '@sinclair/*'], 'core is the domain: no HTTP, no wire shapes'),
  noImports(['src/tools/**/*.ts'], ['fastify', 'fastify-plugin', '@fastify/*'], 'tools know the core, not HTTP'),
  noImports(['src/mcp/{plugin,origin,findings,sdk/load-schemas}.ts'], ['@modelcontextprotocol/*'], 'the SDK is loaded at the first request')
]
