import { readFile } from 'node:fs/promises'
import { readdirSync } from 'node:fs'
import { dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'

/** Packages of hundreds of small files, and where each is one file of the tree. tap leaves out of its stacks what is below `@tapjs`. */
const BUNDLED: ReadonlyMap<string, string> = new Map([['tap', 'node_modules/@tapjs/tap/index.js'], ['@sinclair/typebox', 'packages/typebox.js']])

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
  await Promise.all([bundlePackages(outdir), build({
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

/** Otherwise loading them takes each process 0.4 s of CPU time more. */
async function bundlePackages (outdir: string): Promise<void> {
  await build({
    entryPoints: Array.from(BUNDLED, ([name, path]) => ({ in: fileURLToPath(import.meta.resolve(name)), out: path.replace(/\.js$/, '') })),
    outdir,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    logLevel: 'warning',
    banner: { js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.filename)" }
  })
}

/** Bundles none of the project: imports go to the translated neighbours, and `import.meta.url` stays the address of the source. */
const keepModules = (outdir: string): Plugin => ({
  name: 'keep-modules',
  setup ({ onResolve, onLoad }) {
    onResolve({ filter: /.*/ }, ({ kind, path, resolveDir }) => {
      if (kind === 'entry-point') return undefined
      const bundled = BUNDLED.get(path)
      if (bundled !== undefined) return { path: pathToFileURL(join(outdir, bundled)).href, external: true }
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
