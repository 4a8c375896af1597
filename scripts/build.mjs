/**
 * Builds dist/: the library module by module, and the command line in as few files as it can be. Looking
 * for modules and compiling them is most of the time that a process needs to start. What is loaded late keeps
 * files of its own. Only the package has types: `npm run types` takes ten times as long as all of this.
 */
import { chmodSync, cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { thirdPartyNotices } from './notices.mjs'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))
rmSync('dist', { recursive: true, force: true })

const common = /** @type {const} */ ({ outbase: 'src', outdir: 'dist', bundle: true, platform: 'node', format: 'esm', target: 'node20.19', logLevel: 'warning' })

/** Imports go to the neighbours in dist/, and to packages. */
const keepModules = {
  name: 'keep-modules',
  setup ({ onResolve }) {
    onResolve({ filter: /^\./ }, ({ kind, path }) => kind === 'entry-point' ? undefined : { path: path.replace(/\.ts$/, '.js'), external: true })
  }
}
const modules = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts')).map((path) => `src/${path}`)
await build({ ...common, entryPoints: modules, packages: 'external', plugins: [keepModules] })

const { metafile } = await build({
  ...common,
  entryPoints: ['src/cli/main.ts', 'src/ui/markdown-worker.ts'],
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  // The first is optional: whoever shares limits between replicas installs it. The others are never asked for, since the service has
  // compilers of its own and injects no requests.
  external: ['ioredis', '@fastify/ajv-compiler', '@fastify/fast-json-stringify-compiler', 'light-my-request'],
  // Not `keepNames`: it gives each closure its name when it is made, at run time, on every request.
  // CommonJS in a module: what it requires of Node has to come from somewhere.
  banner: { js: "import { createRequire as createRequireForBundle } from 'node:module'\nconst require = createRequireForBundle(import.meta.url)" },
  metafile: true
})
cpSync('src/cli/skillserve.cjs', 'dist/cli/skillserve.cjs')
cpSync('src/ui/public', 'dist/ui/public', { recursive: true })
writeFileSync('dist/THIRD-PARTY-NOTICES.txt', thirdPartyNotices(metafile))
chmodSync('dist/cli/skillserve.cjs', 0o755)
