import { readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import neostandard from 'neostandard'
import tseslint from 'typescript-eslint'

/**
 * The layers of src, the lowest first: a file imports from its own layer and from those below, and imports form no
 * circle. Names are prefixes of paths below src; the longest one that fits counts.
 */
const LAYERS = [
  ['core/shared/'],
  ['archive/', 'core/format/', 'core/read/'],
  ['core/'],
  ['layout/', 'library/', 'listing/', 'schemas/', 'secrets.ts', 'tools/', 'verdicts/'],
  ['operator/'],
  ['http/', 'log.ts'],
  ['limits/', 'openapi/', 'plugins/', 'sources/'],
  ['config/'],
  ['trust/'],
  ['observe/'],
  ['access/'],
  ['export/', 'mcp/', 'routes/', 'ui/', 'validate/', 'well-known/'],
  ['app.ts'],
  ['cli/', 'index.ts', 'listen.ts', 'open-skills.ts', 'reload.ts', 'server.ts', 'start-summary.ts']
]

/** What the script of the pages uses. */
const BROWSER_GLOBALS = [
  'addEventListener', 'EventSource', 'getSelection', 'history', 'HTMLInputElement', 'location', 'XMLHttpRequest'
]

const SRC = resolve(import.meta.dirname, 'src')

function layerOf (path) {
  let found = { prefix: '', layer: -1 }
  for (const [layer, prefixes] of LAYERS.entries()) {
    for (const prefix of prefixes) {
      if (path.startsWith(prefix) && prefix.length > found.prefix.length) found = { prefix, layer }
    }
  }
  return found.layer
}

const importsOf = new Map()

/** Whether a file leads to another by its imports, those of types included. */
function leadsTo (from, target, seen = new Set()) {
  if (from === target) return true
  if (seen.has(from) || layerOf(relative(SRC, from)) !== layerOf(relative(SRC, target))) return false
  seen.add(from)
  if (!importsOf.has(from)) {
    const imports = [...readFileSync(from, 'utf8').matchAll(/ from '(\.[^']+\.ts)'/g)]
    importsOf.set(from, imports.map(([, path]) => resolve(dirname(from), path)))
  }
  return importsOf.get(from).some((path) => leadsTo(path, target, seen))
}

const layers = {
  meta: { type: 'problem', schema: [] },
  create (context) {
    const from = relative(SRC, context.filename)
    function check (node) {
      const specifier = node.source?.value
      if (typeof specifier !== 'string' || !specifier.startsWith('.')) return
      const to = relative(SRC, resolve(context.filename, '..', specifier))
      const report = (message) => context.report({ node, message })
      if (layerOf(to) === -1 || layerOf(from) === -1) report(`${to} is in no layer of LAYERS in eslint.config.js`)
      else if (layerOf(to) > layerOf(from)) report(`${from} must not import ${to}, which is in a higher layer`)
      else if (leadsTo(resolve(SRC, to), context.filename)) report(`${to} imports this file: imports must not be circular`)
    }
    return {
      ImportDeclaration: check,
      ExportNamedDeclaration: check,
      ExportAllDeclaration: check,
      ImportExpression: check
    }
  }
}

function noImports (files, patterns, message) {
  return { files, rules: { 'no-restricted-imports': ['error', { patterns: [{ group: patterns, message }] }] } }
}

export default [
  { ignores: ['dist/', '.tap/', '.cache/', 'coverage/', 'test/clients/.examples/', 'skills/**'] },
  ...neostandard({ ts: true, noJsx: true, filesTs: ['**/*.mts'] }),
  // `void` says that a promise is left to itself on purpose (no-floating-promises).
  { rules: { 'no-void': ['error', { allowAsStatement: true }] } },
  {
    files: ['src/**/*.ts'],
    plugins: { '@typescript-eslint': tseslint.plugin, project: { rules: { layers } } },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'project/layers': 'error',
      '@stylistic/max-len': ['error', { code: 120 }],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-explicit-any': 'error'
    }
  },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts', 'examples/**/*.mts'],
    plugins: { '@typescript-eslint': tseslint.plugin },
    rules: { '@typescript-eslint/no-explicit-any': 'error' }
  },
  {
    ignores: ['src/**'],
    // A long literal stays in one piece, so that a search finds it.
    rules: {
      '@stylistic/max-len': ['error', {
        code: 120, ignoreStrings: true, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true, ignoreUrls: true
      }]
    }
  },
  {
    files: ['src/**/*.ts'],
    // The variable of libuv alone says how many threads there are.
    ignores: ['src/cli/main.ts', 'src/core/read/disk.ts'],
    rules: {
      'no-restricted-properties': ['error', {
        object: 'process', property: 'env', message: 'only the command line reads the environment'
      }]
    }
  },
  {
    files: ['src/ui/public/*.js'],
    languageOptions: { globals: Object.fromEntries(BROWSER_GLOBALS.map((name) => [name, 'readonly'])) }
  },
  noImports(['src/core/**/*.ts'], ['fastify', 'fastify-plugin', '@fastify/*', '@sinclair/*'], 'core is the domain: no HTTP, no wire shapes'),
  noImports(['src/tools/**/*.ts'], ['fastify', 'fastify-plugin', '@fastify/*'], 'tools know the core, not HTTP'),
  noImports(['src/mcp/{plugin,origin,findings,sdk/load-schemas}.ts'], ['@modelcontextprotocol/*'], 'the SDK is loaded at the first request')
]
