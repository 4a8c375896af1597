import { readFile } from 'node:fs/promises'
import { readdirSync } from 'node:fs'
import { dirname, extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'

/** Packages of hundreds of small files, or of parts that others have too: each is one file of the tree, and shares the parts. */
const BUNDLED = [
  '@modelcontextprotocol/server', '@modelcontextprotocol/server/ext/skills', '@sinclair/typebox', 'ajv', 'ajv-formats', 'ajv/dist/2020.js', 'fastify', 'jose', 'pino'
]

/** tap leaves out of its stacks what is below `@tapjs`. */
const TAP = 'node_modules/@tapjs/tap/index.js'

/** Whatever a test may import. */
const FOLDERS = ['src', 'test', 'scripts', 'examples', 'bench']

/**
 * Writes the sources and the tests as JavaScript, module by module. A loader that translates while a test file starts costs
 * each of the files about one second of CPU time. The whole tree at once costs as much.
 * @param outdir where the tree goes; below `root`, so that packages are found from there
 */
export async function transpile (root: string, outdir: string): Promise<void> {
  const entryPoints = FOLDERS.flatMap((folder) => readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(folder, path)))
  await Promise.all([bundlePackages(root, outdir), build({
    absWorkingDir: root,
    entryPoints,
    outbase: root,
    outdir,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    sourcemap: 'inline',
    sourcesContent: false,
    logLevel: 'warning',
    plugins: [keepModules(outdir)]
  })])
}

/** Otherwise loading them takes each process 0.8 s of CPU time more. */
async function bundlePackages (root: string, outdir: string): Promise<void> {
  const options = {
    absWorkingDir: root,
    outdir,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    logLevel: 'warning',
    banner: { js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.filename)" }
  } as const
  await Promise.all([
    build({ ...options, entryPoints: [{ in: 'tap', out: TAP.replace(/\.js$/, '') }] }),
    build({ ...options, entryPoints: BUNDLED.map((name) => ({ in: name, out: fileOf(name).replace(/\.js$/, '') })), splitting: true, plugins: [nameExports(root)] })
  ])
}

/** Where a bundled package is in the tree. */
function fileOf (name: string): string {
  return name === 'tap' ? TAP : `packages/${name.replace(/\.js$/, '').replaceAll('/', '-')}.js`
}

/** Exports by name what Node exports of a package: of one in CommonJS, esbuild exports the default only. */
const nameExports = (root: string): Plugin => ({
  name: 'name-exports',
  setup ({ onResolve, onLoad }) {
    onResolve({ filter: /.*/ }, ({ kind, path }) => kind === 'entry-point' ? { path, namespace: 'package' } : undefined)
    onLoad({ filter: /.*/, namespace: 'package' }, async ({ path }) => {
      const names = Object.keys(await import(path) as object).filter((name) => name !== 'module.exports')
      return { contents: `export { ${names.join()} } from '${path}'`, resolveDir: root }
    })
  }
})

/** Bundles none of the project: imports go to the translated neighbours, and `import.meta.url` stays the address of the source. */
const keepModules = (outdir: string): Plugin => ({
  name: 'keep-modules',
  setup ({ onResolve, onLoad }) {
    onResolve({ filter: /.*/ }, ({ kind, path, resolveDir }) => {
      if (kind === 'entry-point') return undefined
      if (path === 'tap' || BUNDLED.includes(path)) return { path: pathToFileURL(join(outdir, fileOf(path))).href, external: true }
      if (!path.startsWith('.')) return { path, external: true }
      // What is not translated stays where it is.
      const target = extname(path) === '.ts' ? path.replace(/\.ts$/, '.js') : pathToFileURL(resolve(resolveDir, path)).href
      return { path: target, external: true }
    })
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8')
      return { contents: source.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)), loader: 'ts', resolveDir: dirname(path) }
    })
  }
})
