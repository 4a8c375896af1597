import neostandard from 'neostandard'
import tseslint from 'typescript-eslint'

/** Arrows point inward only: cli, server → app → well-known → routes, mcp → plugins → tools, schemas → core. */
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
    plugins: { '@typescript-eslint': tseslint.plugin },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
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
  noImports(['src/core/**/*.ts'], ['fastify', 'fastify-plugin', '@fastify/*', '@sinclair/*', '**/tools/**', '**/routes/**', '**/mcp/**', '**/schemas/**', '**/plugins/**', '**/well-known/**', '**/cli/**', '**/app.ts', '**/config.ts', '**/server.ts'], 'core is the domain: no HTTP, nothing from outside src/core'),
  noImports(['src/tools/**/*.ts'], ['fastify', 'fastify-plugin', '@fastify/*', '**/routes/**', '**/mcp/**', '**/plugins/**', '**/well-known/**', '**/cli/**', '**/app.ts', '**/config.ts', '**/server.ts'], 'tools know the core, not HTTP'),
  noImports(['src/mcp/**/*.ts'], ['**/routes/**', '**/cli/**', '**/app.ts', '**/config.ts', '**/server.ts'], 'imports point inward'),
  noImports(['src/mcp/{plugin,origin,eligibility,strict-yaml}.ts'], ['@modelcontextprotocol/*', '**/routes/**', '**/cli/**', '**/app.ts', '**/config.ts', '**/server.ts'], 'the SDK is loaded at the first request'),
  noImports(['src/schemas/**/*.ts', 'src/plugins/**/*.ts', 'src/routes/**/*.ts', 'src/well-known/**/*.ts'], ['**/cli/**', '**/app.ts', '**/server.ts'], 'imports point inward')
]
