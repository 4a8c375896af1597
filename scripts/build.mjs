/**
 * Builds dist/: the library with its types, module by module, and the command line in as few files as it can be. Looking
 * for modules and compiling them is most of the time that a process needs to start. What is loaded late keeps
 * files of its own.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { thirdPartyNotices } from './notices.mjs'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))
rmSync('dist', { recursive: true, force: true })
// `npm run typecheck` checks the types: it takes longer than all of the build.
execFileSync(process.execPath, [createRequire(import.meta.url).resolve('typescript/bin/tsc'), '-p', 'tsconfig.build.json', '--noCheck'], { stdio: 'inherit' })
const { metafile } = await build({
  entryPoints: { 'cli/main': 'dist/cli/main.js', 'ui/markdown-worker': 'dist/ui/markdown-worker.js' },
  outdir: 'dist',
  allowOverwrite: true,
  bundle: true,
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  platform: 'node',
  // The first is optional: whoever shares limits between replicas installs it. The others are never asked for, since the service has
  // compilers of its own and injects no requests.
  external: ['ioredis', '@fastify/ajv-compiler', '@fastify/fast-json-stringify-compiler', 'light-my-request'],
  format: 'esm',
  target: 'node20.19',
  // Not `keepNames`: it gives each closure its name when it is made, at run time, on every request.
  // CommonJS in a module: what it requires of Node has to come from somewhere.
  banner: { js: "import { createRequire as createRequireForBundle } from 'node:module'\nconst require = createRequireForBundle(import.meta.url)" },
  metafile: true,
  logLevel: 'warning'
})
cpSync('src/ui/public', 'dist/ui/public', { recursive: true })
writeFileSync('dist/THIRD-PARTY-NOTICES.txt', thirdPartyNotices(metafile))
chmodSync('dist/cli/skillserve.cjs', 0o755)
