import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { startProcess } from '../helper/process.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const TSC = fileURLToPath(import.meta.resolve('typescript/bin/tsc'))
/** What is not in a fresh clone. */
const NOT_CLONED = ['.git', '.tap', 'coverage', 'dist', 'node_modules']
const FENCED = /^```[^]*?^```$/gm
/** The checkout has the package, and the packed product is unpacked inside the checkout. */
const RESOLVE = `export async function resolve (name, context, next) {
  if (name === 'ioredis') throw Object.assign(new Error(name), { code: 'ERR_MODULE_NOT_FOUND' })
  return await next(name, context)
}`
const HOOKS = JSON.stringify(`data:text/javascript,${encodeURIComponent(RESOLVE)}`)
const REGISTER = `import { register } from 'node:module'; register(${HOOKS})`
const WITHOUT_IOREDIS = `data:text/javascript,${encodeURIComponent(REGISTER)}`
const LINK = /\]\(([^)\s#]+)[^)\s]*\)/g

interface Package {
  readonly bin: { readonly skillserve: string }
  readonly exports: { readonly '.': { readonly types: string, readonly default: string } }
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
  scripts: Record<string, string>
}

/** A copy of the project before its first build. Its build takes the code from here, which was built before. */
function unbuiltClone (t: Test): string {
  const clone = join(t.testdir({}), 'clone')
  for (const name of readdirSync(ROOT)) {
    if (!NOT_CLONED.includes(name)) cpSync(join(ROOT, name), join(clone, name), { recursive: true })
  }
  const manifest = JSON.parse(readFileSync(join(clone, 'package.json'), 'utf8')) as Package
  manifest.scripts['build'] = `cp -R '${ROOT}dist' dist`
  writeFileSync(join(clone, 'package.json'), JSON.stringify(manifest))
  return clone
}

/** Packs the project with npm, and unpacks it into an empty folder, without any dependency. */
async function install (t: Test): Promise<string> {
  const clone = unbuiltClone(t)
  await promisify(execFile)('npm', ['pack', '--offline', '--pack-destination', '..'], { cwd: clone })
  const folder = join(clone, '../app/node_modules')
  mkdirSync(folder, { recursive: true })
  const { version } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { readonly version: string }
  execFileSync('tar', ['-xzf', join(clone, `../skillserve-${version}.tgz`), '-C', folder])
  return join(folder, 'package')
}

t.test('K1: what npm packs in an unbuilt clone is the whole product', async (t) => {
  const folder = await install(t)
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Package
  const code = readdirSync(join(folder, 'dist'), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.c?js$/.test(file))
    .map((file) => [file, readFileSync(join(folder, 'dist', file), 'utf8')] as const)

  await t.test('K2 K80: the linked program without any folder serves the example skills, and says so', async (t) => {
    const cwd = join(folder, '../..')
    mkdirSync(join(cwd, 'node_modules/.bin'))
    const program = join(cwd, 'node_modules/.bin/skillserve')
    symlinkSync(join(folder, manifest.bin.skillserve), program)
    const service = await startProcess(t, { script: pathToFileURL(program).href, cwd })
    const get = async (path: string) => {
      const response = await fetch(service.url + path)
      t.equal(response.status, 200, path)
      return await response.text()
    }
    t.match(JSON.parse(await get('/skills')), { skills: readdirSync(join(folder, 'skills')) })
    for (const path of ['/skills/weather', '/catalog/weather', '/agent/tools', '/openapi.json']) await get(path)
    const archive = await (await fetch(`${service.url}/skills/calculator/archive.zip`)).arrayBuffer()
    const headers = { 'content-type': 'application/zip' }
    const validated = await fetch(`${service.url}/validate`, { method: 'POST', headers, body: archive })
    t.match(await validated.json(), { skill_name: 'calculator', valid: true, findings: [] }, 'K80: a ZIP is opened')
    const page = await (await fetch(service.url, { headers: { accept: 'text/html' } })).text()
    const assets = Array.from(page.matchAll(/(?:href|src)="([^"]*assets\/[^"]+)"/g), ([, asset = '']) => asset)
    t.ok(assets.length >= 2, page.slice(0, 200))
    for (const asset of assets) await get(`/${asset}`)
    t.match(service.log()[0], { level: 30, path: join(folder, 'skills'), msg: /the example skills of the package/ })
    t.equal((await service.stop()).code, 0)
  })

  t.test('K33: programs that use the library compile, its types and those of its dependencies included', async (t) => {
    const app = join(folder, '../../types')
    mkdirSync(join(app, 'node_modules'), { recursive: true })
    symlinkSync(folder, join(app, 'node_modules/skillserve'))
    writeFileSync(join(app, 'package.json'), '{}')
    for (const name of ['library.mts', 'embedded.mts']) cpSync(join(folder, 'examples', name), join(app, name))
    for (const { module, moduleResolution } of [
      { module: 'nodenext', moduleResolution: 'nodenext' }, { module: 'esnext', moduleResolution: 'bundler' }
    ]) {
      const options = { strict: true, skipLibCheck: false, noEmit: true, target: 'es2023', types: ['node'] }
      const compilerOptions = { ...options, module, moduleResolution }
      const config = { compilerOptions, files: ['library.mts', 'embedded.mts'] }
      writeFileSync(join(app, 'tsconfig.json'), JSON.stringify(config))
      const compiled = await promisify(execFile)(process.execPath, [TSC, '-p', app]).catch((error: unknown) => error)
      t.match(compiled, { stdout: '' }, moduleResolution)
      t.notMatch(compiled, { code: Number }, moduleResolution)
    }
  })

  t.test('without the optional package that a setting needs, one line says so', (t) => {
    const env = { PATH: process.env['PATH'], LIMITS: 'on', LIMITS_STORE: 'redis://127.0.0.1:1' }
    const args = ['--import', WITHOUT_IOREDIS, join(folder, manifest.bin.skillserve), '--port', '0']
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
    t.equal(status, 1)
    t.equal(stderr, 'skillserve: LIMITS_STORE needs the package ioredis: npm install ioredis\n')
    t.end()
  })

  t.test('links of its documents lead to files of the package', (t) => {
    const pages = readdirSync(join(folder, 'docs')).filter((name) => name.endsWith('.md'))
    const documents = ['README.md', 'CHANGELOG.md', 'SECURITY.md', ...pages.map((name) => `docs/${name}`)]
    for (const document of documents) {
      const text = readFileSync(join(folder, document), 'utf8')
      const prose = text.replaceAll(FENCED, '').replaceAll(/`[^`\n]+`/g, '')
      for (const [, link = ''] of prose.matchAll(LINK)) {
        if (!/^https?:/.test(link)) t.ok(existsSync(join(folder, dirname(document), link)), `${document}: ${link}`)
      }
    }
    t.end()
  })

  t.test('no file of it names a source map that is not there', (t) => {
    t.strictSame(code.filter(([, text]) => /^\/\/# sourceMappingURL=(?!data:)/m.test(text)).map(([file]) => file), [])
    t.end()
  })
})

/** Each package of the card, and the file or folder of the project that it works in. */
const PACKAGES = {
  fastify: 'src/app.ts',
  '@fastify/swagger': 'src/openapi',
  '@fastify/swagger-ui': 'src/openapi',
  '@sinclair/typebox': 'src/schemas',
  chokidar: 'src/core/watch',
  pino: 'src/log.ts',
  tap: 'test'
} as const

const TOP_LEVEL = [
  'package.json', 'tsconfig.json', 'src', 'test', 'openapi', 'Dockerfile', 'docker-compose.yml', 'skills'
]

function sourcesOf (path: string): string[] {
  if (statSync(path).isFile()) return [readFileSync(path, 'utf8')]
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  return files.map((name) => readFileSync(join(path, name), 'utf8'))
}

t.test('K0: the packages of the card are dependencies, and each is imported in its part of the project', async (t) => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Package
  for (const [name, path] of Object.entries(PACKAGES)) {
    t.ok(name in (name === 'tap' ? devDependencies : dependencies), `${name} is in package.json`)
    const imported = new RegExp(`^import (?!type )[^']*'${name}'$`, 'm')
    t.ok(sourcesOf(join(ROOT, path)).some((source) => imported.test(source)), `${path} imports ${name}`)
  }
})

t.test("K0: npm test runs tap's own command", async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Package
  t.match(scripts['test'], /(?:^|&& )tap$/)
})

t.test('K0: the top level has the files and folders of the card', async (t) => {
  for (const name of TOP_LEVEL) t.ok(existsSync(join(ROOT, name)), name)
})
