import { execFile, execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { load } from 'js-yaml'
import t, { type Test } from 'tap'
import { startProcess } from '../helper/process.ts'
import { skill } from '../helper/skills.ts'

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
/** What `npm install TARBALL` does, but for the dependencies. */
const INSTALL = `mkdir -p node_modules/.bin node_modules/skillserve
tar -xzf "$1" -C node_modules/skillserve --strip-components=1
ln -s ../skillserve/dist/cli/skillserve.cjs node_modules/.bin/skillserve`
const LINK = /\]\(([^)\s#]+)[^)\s]*\)/g

interface Package {
  readonly version: string
  readonly bin: { readonly skillserve: string }
  readonly exports: { readonly '.': { readonly types: string, readonly default: string } }
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
  scripts: Record<string, string>
}

/** A copy of the project before its first build. Its build takes the code from here, which was built before. */
function unbuiltClone (folder: string): string {
  const clone = join(folder, '_cacache/clone')
  for (const name of readdirSync(ROOT)) {
    if (!NOT_CLONED.includes(name)) cpSync(join(ROOT, name), join(clone, name), { recursive: true })
  }
  const manifest = JSON.parse(readFileSync(join(clone, 'package.json'), 'utf8')) as Package
  manifest.scripts['build'] = `cp -R '${ROOT}dist' .`
  writeFileSync(join(clone, 'package.json'), JSON.stringify(manifest))
  return clone
}

const base = t.testdir({})
const clone = unbuiltClone(base)
/** The standard output of `npm pack`. */
const packed = execFileSync('npm', ['pack', '--offline', '--pack-destination', base], {
  cwd: clone, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']
})
const tarball = join(base, packed.trim())

/** Unpacks the package below a folder as npm does, without its dependencies, which the checkout has. */
function install (folder: string): string {
  execFileSync('sh', ['-c', INSTALL, 'sh', tarball], { cwd: folder })
  return join(folder, 'node_modules/skillserve')
}

t.test('K1: what npm packs in an unbuilt clone is the whole product', async (t) => {
  const folder = install(t.testdir({}))
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Package
  const code = readdirSync(join(folder, 'dist'), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.c?js$/.test(file))
    .map((file) => [file, readFileSync(join(folder, 'dist', file), 'utf8')] as const)

  await t.test('K2 K80: the linked program without any folder serves the example skills, and says so', async (t) => {
    const cwd = join(folder, '../..')
    const program = join(cwd, 'node_modules/.bin/skillserve')
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
    const compilerOptions = {
      strict: true,
      skipLibCheck: false,
      // Those of TypeScript itself, which take seconds.
      skipDefaultLibCheck: true,
      noEmit: true,
      lib: ['es2023'],
      target: 'es2023',
      types: ['node'],
      module: 'nodenext'
    }
    const config = { compilerOptions, files: ['library.mts', 'embedded.mts'] }
    writeFileSync(join(app, 'tsconfig.json'), JSON.stringify(config))
    const compiled = await promisify(execFile)(process.execPath, [TSC, '-p', app]).catch((error: unknown) => error)
    t.match(compiled, { stdout: '' })
    t.notMatch(compiled, { code: Number })
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

interface Step {
  readonly run: string
  readonly env: Readonly<Record<string, string>>
}

interface Action {
  readonly inputs: Readonly<Record<string, { readonly default: string }>>
  readonly runs: { readonly steps: readonly Step[] }
}

function repository (t: Test): string {
  const cwd = t.testdir({
    pkg: { skills: { good: skill('good'), 'b|<d>': { 'SKILL.md': '---\nname: other\ndescription: x\n---\nbody\n' } } },
    temp: {},
    // The last argument is the package, or where it is put.
    bin: {
      npm: `#!/bin/sh -e
echo "$1" >> "$RUNNER_TEMP/npm.log"
for last; do :; done
case $1 in
  pack) cp '${tarball}' "$last" ;;
  install) set -- "$last"
${INSTALL} ;;
esac
`
    }
  })
  chmodSync(join(cwd, 'bin/npm'), 0o755)
  execFileSync('git', ['init', '-q', cwd])
  return cwd
}

/** Runs the steps of the action as the runner of GitHub does. */
function runAction (workspace: string, inputs: Readonly<Record<string, string>>) {
  const folder = join(clone, '.github/actions/validate')
  const action = load(readFileSync(join(folder, 'action.yml'), 'utf8')) as Action
  const summary = join(workspace, 'summary.md')
  const valueOf = (text: string): string => text.replaceAll(/\$\{\{ inputs\.([\w-]+) \}\}/g, (_whole, name: string) =>
    inputs[name] ?? action.inputs[name]?.default ?? `no input ${name}`)
  const [step, ...others] = action.runs.steps
  const script = join(workspace, 'step.sh')
  writeFileSync(script, step?.run ?? '')
  const env = Object.fromEntries(Object.entries(step?.env ?? {}).map(([name, text]) => [name, valueOf(text)]))
  const { status, stdout, stderr } = spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', script], {
    cwd: workspace,
    encoding: 'utf8',
    env: {
      PATH: `${join(workspace, 'bin')}:${process.env['PATH']}`,
      RUNNER_TEMP: join(workspace, 'temp'),
      GITHUB_ACTION_PATH: folder,
      GITHUB_WORKSPACE: workspace,
      GITHUB_STEP_SUMMARY: summary,
      ...env
    }
  })
  t.strictSame(readdirSync(join(workspace, 'temp')), ['npm.log'], 'what was installed is removed')
  return { status, stdout, stderr, others, summary: existsSync(summary) ? readFileSync(summary, 'utf8') : '' }
}

t.test('K98: the action installs the package, annotates lines, writes a table, and exits as the report', async (t) => {
  const cwd = repository(t)
  const commands = () => readFileSync(join(cwd, 'temp/npm.log'), 'utf8').trim().split('\n')
  const failed = runAction(cwd, { paths: 'pkg/skills\n', targets: 'spec,codex' })
  t.strictSame(commands(), ['ci', 'pack', 'install'], 'the commit of the action')
  t.match(failed, { status: 1, stderr: '', others: [] })
  t.match(failed.stdout, /^::error file=pkg\/skills\/b\|<d>\/SKILL\.md,line=2,col=7,title=name_folder_mismatch::/)
  t.match(failed.summary, '### 2 skills: 1 errors, 0 warnings\n')
  t.match(failed.summary, '| <code>pkg/skills/b&#124;&#60;d&#62;</code> | 1 | 0 | 0 | spec refused, codex ok |\n')
  t.match(failed.summary, '| <code>pkg/skills/good</code> | 0 | 0 | 0 | spec ok, codex ok |\n')
  for (const { inputs, status, stdout } of [
    {
      inputs: { paths: 'pkg/skills', 'fail-on': 'never', annotations: 'false' },
      status: 0,
      stdout: /^pkg\/skills\/.*:2:7 /
    },
    { inputs: { paths: '--fix\n$(touch hacked)' }, status: 2, stdout: /^$/ }
  ]) t.match(runAction(cwd, { ...inputs, package: tarball }), { status, stdout }, JSON.stringify(inputs))
  t.strictSame(commands().slice(3), ['install', 'install'], 'a tarball')
  t.notOk(existsSync(join(cwd, 'hacked')))
})

t.test('K98: the pre-commit hook validates the skills that are committed', async (t) => {
  const cwd = repository(t)
  // pre-commit installs what `npm pack` prints. Later versions install from git, where npm runs `prepare` in its cache.
  t.match(packed, /^skillserve-[\d.]+\.tgz\n$/)
  rmSync(join(clone, 'dist'), { recursive: true })
  writeFileSync(join(cwd, 'bin/npm'), '#!/bin/sh\necho "$@"\n')
  const env = { PATH: `${join(cwd, 'bin')}:${process.env['PATH']}` }
  const prepared = execFileSync(process.execPath, ['scripts/prepare.mjs'], { cwd: clone, encoding: 'utf8', env })
  t.equal(prepared, 'ci --ignore-scripts --global=false\nrun build\n')
  install(cwd)
  const [hook] = load(readFileSync(join(ROOT, '.pre-commit-hooks.yaml'), 'utf8')) as
    ReadonlyArray<{ readonly entry: string, readonly language: string, readonly files: string }>
  const commit = (...paths: readonly string[]) => {
    const files = paths.filter((path) => new RegExp(hook?.files ?? '').test(path))
    const [command = '', ...args] = hook?.entry.split(' ') ?? []
    const env = { PATH: `${join(cwd, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}` }
    return spawnSync(command, [...args, ...files], { cwd, encoding: 'utf8', env })
  }
  const good = commit('pkg/skills/good/SKILL.md', 'pkg/skills/good/other.md')
  t.match(good, { status: 0, stdout: /^1 skill: no findings/ })
  t.match(commit('pkg/skills/good/SKILL.md', 'pkg/skills/b|<d>/SKILL.md'), {
    status: 1, stdout: /^pkg\/skills\/b\|<d>\/SKILL\.md:2:7 {2}error {2}name_folder_mismatch[^]*\n2 skills: 1 error/
  })
  t.equal(hook?.language, 'node')
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

t.test("K0: the top level, the dependencies and tap's own command are those of the card", async (t) => {
  const text = readFileSync(join(ROOT, 'package.json'), 'utf8')
  const { dependencies, devDependencies, scripts } = JSON.parse(text) as Package
  for (const [name, path] of Object.entries(PACKAGES)) {
    t.ok(name in (name === 'tap' ? devDependencies : dependencies), `${name} is in package.json`)
    const imported = new RegExp(`^import (?!type )[^']*'${name}'$`, 'm')
    t.ok(sourcesOf(join(ROOT, path)).some((source) => imported.test(source)), `${path} imports ${name}`)
  }
  t.match(scripts['test'], /(?:^|&& )tap$/)
  for (const name of TOP_LEVEL) t.ok(existsSync(join(ROOT, name)), name)
})
