import { execFile, spawnSync } from 'node:child_process'
import { appendFileSync, cpSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { load } from 'js-yaml'
import { minimatch } from 'minimatch'
import t from 'tap'
import { EXAMPLE_SKILL, withErrors } from '../../scripts/example-skill.ts'
import { withFindings, withTargets } from '../../scripts/finding-codes.ts'
import { DOCUMENTS as TABLES, OPERATIONS, withMetrics, withTables } from '../../scripts/tables.ts'
import { readConfigFile } from '../../src/config/config-file.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { MAX_HASHED_FIRST_BYTES } from '../../src/core/read/file-cache.ts'
import { MAX_IGNORE_FILE_BYTES, MAX_IGNORE_PATTERNS } from '../../src/core/read/ignore-file.ts'
import * as coreLimits from '../../src/core/shared/limits.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import * as httpLimits from '../../src/http/limits.ts'
import * as mcpLimits from '../../src/mcp/limits.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { MORE_ENDPOINTS } from '../../src/routes/endpoints.ts'
import { MAX_PAGE_ENTRIES, MAX_QUERY_CODE_POINTS } from '../../src/schemas/catalog.ts'
import * as toolLimits from '../../src/tools/limits.ts'
import { createTools } from '../../src/tools/tools.ts'
import { FINDINGS } from '../../src/validate/report.ts'
import * as verdictLimits from '../../src/verdicts/limits.ts'
import { runHere } from '../helper/command-line.ts'
import { FINDING_EXAMPLES, WITHOUT_EXAMPLE } from '../helper/finding-examples.ts'
import { startProcess } from '../helper/process.ts'
import { ALONE } from '../helper/suite.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** How a document that is packed links to a file that is not. */
const REPOSITORY = 'https://github.com/skillserve/skillserve/blob/main/'
/** Where the documents say that the service listens. */
const ORIGIN = 'http://127.0.0.1:8080'
const DOCUMENTS = [
  ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...readdirSync(`${ROOT}docs`).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)
]

interface Block {
  readonly document: string
  readonly line: number
  readonly language: string
  readonly text: string
  /** The block that follows with nothing but blank lines in between, unless it is another command: its output. */
  readonly output: string | undefined
}

const FENCED = /^```(\w*)\n([^]*?)^```$/gm
const NEXT_FENCED = /^\s*```(\w*)\n([^]*?)^```$/m

function blocksOf (document: string): Block[] {
  const source = read(document)
  return Array.from(source.matchAll(FENCED), (match) => {
    const [block, language = '', text = ''] = match
    const next = NEXT_FENCED.exec(source.slice(match.index + block.length))
    const isOutput = next?.index === 0 && next[1] !== 'sh' && (language === 'sh' || language === 'js')
    const line = source.slice(0, match.index).split('\n').length
    return { document, line, language, text, output: isOutput ? next[2] : undefined }
  })
}

function read (document: string): string {
  return readFileSync(join(ROOT, document), 'utf8')
}

/** What is shown as a pattern: `…` stands for anything. */
function patternOf (shown: string): RegExp {
  const literal = shown.trimEnd().split('…').map(escapePattern)
  return new RegExp(`^${literal.join('[^]*')}$`)
}

function escapePattern (text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}

/** The status that a shown answer has: its own word for it, otherwise one of success. */
function statusOf (shown: string): RegExp {
  const status = /"status":(\d{3})/.exec(shown)?.[1]
  return status === undefined ? /^2\d\d$/ : new RegExp(`^${status}$`)
}

const blocks = DOCUMENTS.flatMap(blocksOf)
const hasCurl = spawnSync('curl', ['--version']).status === 0

const served = t.testdir({})
cpSync(`${ROOT}skills`, join(served, 'skills'), { recursive: true })
const service = await startProcess(t, { args: ['skills'], cwd: served })

t.test('every curl command gets the answer that is shown', { skip: !hasCurl && 'curl is not installed' }, async (t) => {
  // Waits for the first index.
  await fetch(`${service.url}/agent/prompt`)
  // curl then tells the status of each answer on stderr.
  const cwd = t.testdir({
    '.curlrc': 'write-out = "%{stderr}%{http_code}\\n"\n',
    skills: t.fixture('symlink', `${ROOT}skills`)
  })
  const commands = blocks.filter(({ language, text }) => language === 'sh' && text.startsWith('curl '))
  t.ok(commands.length > 20)

  for (const { document, line, text, output = '' } of commands) {
    const { stdout, stderr } = spawnSync('sh', ['-c', text.replaceAll(ORIGIN, service.url)], {
      cwd, encoding: 'utf8', env: { PATH: process.env['PATH'], CURL_HOME: cwd }
    })
    // A comment that keeps a stream of events open may come at any time.
    t.match(stdout.replaceAll(': still here\n\n', '').trimEnd(), patternOf(output), `${document}:${line}`)
    for (const status of stderr.trim().split('\n')) t.match(status, statusOf(output), `${document}:${line}, status`)
  }
})

t.test('every shown refusal of the command line is the real one', async (t) => {
  const commands = blocks.filter(({ text, output }) => text.startsWith('skillserve ') && output !== undefined)
  t.ok(commands.length > 0)
  for (const { document, line, text, output = '' } of commands) {
    const { stdout, stderr } = await runHere(text.trim().split(' ').slice(1), { cwd: served })
    t.match((stdout + stderr).trimEnd(), patternOf(output), `${document}:${line}`)
  }
})

t.test('K33: the library does what the documents show, imported by the name of the package', async (t) => {
  const [example] = blocks.filter(({ language, document }) => language === 'js' && document === 'docs/tool-calls.md')
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', example?.text ?? ''], {
    cwd: ROOT, encoding: 'utf8', env: { PATH: process.env['PATH'] }
  })
  t.match(stdout.trimEnd(), patternOf(example?.output ?? ''), stderr)
})

t.test('the EventSource example in docs/discovery-and-events.md', async (t) => {
  const [example] = blocks.filter(({ language, document }) =>
    language === 'js' && document === 'docs/discovery-and-events.md')
  await service.printed('watching a skills folder')
  const untilBothLines = `
    const { log } = console
    const seen = new Set()
    console.log = (...line) => {
      log(...line)
      if (seen.add(String(line[0]).startsWith('all')).size === 2) process.exit()
    }
  `
  const run = promisify(execFile)(process.execPath, [
    '--no-warnings', '--experimental-eventsource', '--input-type=module', '-e',
    untilBothLines + example?.text.replaceAll(ORIGIN, service.url)
  ], { timeout: 60_000 })
  const edits = setInterval(() => { appendFileSync(join(served, 'skills/calculator/SKILL.md'), '!') }, 300)
  t.teardown(() => { clearInterval(edits) })
  const { stdout } = await run
  clearInterval(edits)
  t.match(stdout, /^all skills: .*calculator/m)
  t.match(stdout, /^calculator is at sha256:[\da-f]{64}$/m)
})

t.test('the programs in the documents are those of the examples, whose types are checked', async (t) => {
  const examples = [
    ['README.md', 'ts', 'examples/agent-loop.mts'],
    ['docs/tool-calls.md', 'js', 'examples/library.mts']
  ] as const
  for (const [document, language, example] of examples) {
    const [program] = blocks.filter((block) =>
      block.document === document && block.language === language && block.text.includes('answer'))
    t.ok(program !== undefined && read(example).includes(program.text), example)
  }
})

t.test('the routes that the README names are there', async (t) => {
  // That the document has all is proven by test/project/openapi.test.ts.
  const { paths } = load(read('openapi/openapi.yaml')) as { readonly paths: Readonly<Record<string, unknown>> }
  const routes = new Set([
    ...Object.keys(paths).map((path) => path.replace('{path}', '*').replaceAll(/\{(\w+)\}/g, ':$1')),
    ...MORE_ENDPOINTS.map(({ path }) => path)
  ])
  const named = Array.from(read('README.md').matchAll(/`(?:GET|POST) (\/[^`?]*)`/g), ([, route = '']) => route)
  t.ok(named.length > 10)
  t.strictSame(named.filter((route) => !routes.has(route)), [])
})

t.test('K48: the documents have every error code (if not: npm run tables)', async (t) => {
  t.equal(read('docs/rest.md'), withErrors(read('docs/rest.md')))
})

t.test('K2: the tables of settings in the documents are those of the source', async (t) => {
  for (const document of Object.keys(TABLES)) {
    t.equal(read(document), withTables(document, read(document)), `${document}: run \`npm run tables\``)
  }
})

t.test('the lists of the skill using-skillserve are those of the source', async (t) => {
  for (const [document, withLists] of Object.entries(EXAMPLE_SKILL)) {
    t.equal(read(document), withLists(read(document)), `${document}: run \`npm run tables\``)
  }
  const skill = read('skills/using-skillserve/SKILL.md')
  for (const { name, toolset } of createTools()) {
    if (toolset === 'reader' || toolset === 'explore') t.ok(skill.includes(`| \`${name}\` |`), name)
  }
})

t.test('the limits in the documents are those of the service', async (t) => {
  const documented = read('docs/operations.md').matchAll(/^\| .* \| ([\d,]+)(?: [a-z ]+)? \| `([A-Z_]+)` \|$/gm)
  const rows = Array.from(documented, ([, value = '', name = '']) => [name, Number(value.replaceAll(',', ''))] as const)
  t.ok(rows.length > 10)
  const actual = new Map<string, number>(Object.entries({
    ...coreLimits,
    ...httpLimits,
    ...mcpLimits,
    ...toolLimits,
    ...verdictLimits,
    MAX_HASHED_FIRST_BYTES,
    MAX_IGNORE_FILE_BYTES,
    MAX_IGNORE_PATTERNS,
    MAX_PAGE_ENTRIES,
    MAX_QUERY_CODE_POINTS
  }))
  for (const [name, value] of rows) t.equal(actual.get(name), value, name)
  const bounds = Object.keys({ ...httpLimits, ...mcpLimits, ...toolLimits }).filter((name) => name.startsWith('MAX_'))
  t.strictSame(bounds.filter((name) => !rows.some(([documented]) => documented === name)), [], 'each has a row')
})

t.test('the configuration files that are shown can be read, and one has every kind of source', async (t) => {
  const files = blocks.filter(({ language, text }) => language === 'yaml' && text.startsWith('sources:'))
  const folder = t.testdir(Object.fromEntries(files.map(({ text }, index) => [`${index}.yaml`, text])))
  const kinds = await Promise.all(files.map(async (_, index) => {
    const sources = await readConfigFile(join(folder, `${index}.yaml`))
    return sources.map(({ kind }) => kind)
  }))
  const wanted = ['folder', 'git', 'archive', 's3', 'oci', 'site']
  t.ok(kinds.some((shown: readonly string[]) => wanted.every((kind) => shown.includes(kind))), String(kinds))
})

t.test('every link inside the documents leads somewhere', async (t) => {
  for (const document of DOCUMENTS) {
    for (const [, link = ''] of read(document).replaceAll(FENCED, '').replaceAll(/`[^`\n]+`/g, '').matchAll(
      /\]\(([^)\s]+)\)/g)) {
      const isInRepository = link.startsWith(REPOSITORY)
      if (/^https?:/.test(link) && !isInRepository) continue
      const [path = '', anchor] = link.replace(REPOSITORY, '').split('#')
      const target = path === '' ? document : join(isInRepository ? '' : dirname(document), path)
      t.ok(existsSync(join(ROOT, target)), `${document}: ${link}`)
      if (anchor !== undefined) t.ok(anchorsOf(read(target)).includes(anchor), `${document}: ${link}`)
    }
  }
})

/** Anchors as GitHub makes them of headings. */
function anchorsOf (source: string): string[] {
  return Array.from(source.matchAll(/^#+ (.+)$/gm), ([, heading = '']) =>
    heading.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-'))
}

t.test('K79: each code has a heading that reports link to, and an example (if not: npm run tables)', async (t) => {
  const findings = read('docs/findings.md')
  t.equal(findings, withFindings(findings))
  t.equal(read('docs/validate.md'), withTargets(read('docs/validate.md')))
  for (const code of Object.keys(FINDINGS)) {
    t.ok(findings.includes(`\n### \`${code}\`\n`), code)
    const hasExample = Object.hasOwn(FINDING_EXAMPLES, code)
    t.equal(hasExample, !WITHOUT_EXAMPLE.has(code),
      `test/helper/finding-examples.ts has an example of ${code}, or says why not`)
  }
})

t.test('K31: each tool has a row of its results, and a toolset, in docs/tool-calls.md', async (t) => {
  const text = read('docs/tool-calls.md')
  for (const { name } of createTools()) {
    t.match(text, new RegExp(`^\\| (?:.*, )?\`${name}\`.* \\| .* \\| .* \\|$`, 'm'), `${name}: results`)
    t.match(text, new RegExp(`^\\|.*\\| \`\\w+\`.*: .*\`${name}\``, 'm'), `${name}: toolset`)
  }
})

const SPECIFICATION = readFileSync(`${ROOT}docs/specification.md`, 'utf8')

/** A statement of the specification begins with its id in bold: `- **K12** …`. */
const STATEMENT = /^- \*\*(K\d+)\*\* /gm

t.test('npm test runs every test file once', async (t) => {
  const { include } = load(readFileSync(`${ROOT}.taprc`, 'utf8')) as { readonly include: readonly string[] }
  const files = sourcesBelow('test').filter((file) => file.endsWith('.test.ts'))
  const inSuites = files.filter((file) => dirname(file) === 'test').flatMap((suite) => {
    const [, list = ''] = /runFolders\(([^)]+)\)/.exec(readFileSync(`${ROOT}${suite}`, 'utf8')) ?? []
    const folders = Array.from(list.matchAll(/'([^']+)'/g), ([, folder]) => `test/${folder}`)
    return files.filter((file) => folders.includes(dirname(file)) && !ALONE.test(basename(file)))
  })
  const alone = files.filter((file) => include.some((pattern) => minimatch(file, pattern)))
  t.strictSame([...alone, ...inSuites].sort(), files.sort())
})

/** The first argument of a call of `test`, if it begins as a literal: what a template inserts does not matter. */
const TEST_NAME = /\.test\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g

/** One id or several at the beginning of a name: `K12: …`, `K3 K14: …`, `K12, K13: …`, `K1 and K2: …`. */
const LEADING_IDS = /^K\d+(?:(?:,| and)? K\d+)*\b/

function sourcesBelow (folder: string): string[] {
  return readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => `${folder}/${path.replaceAll('\\', '/')}`)
}

function testNames (): string[] {
  return sourcesBelow('test').flatMap((file) =>
    Array.from(readFileSync(`${ROOT}${file}`, 'utf8').matchAll(TEST_NAME), ([, ...quoted]) => quoted.join('')))
}

function byNumber (a: string, b: string): number {
  return Number(a.slice(1)) - Number(b.slice(1))
}

const statements = Array.from(SPECIFICATION.matchAll(STATEMENT), ([, id = '']) => id)
const proven = new Set(testNames().flatMap((name) => LEADING_IDS.exec(name)?.[0].match(/K\d+/g) ?? []))

t.test('every statement of the specification has an id of its own and a test whose name begins with it', async (t) => {
  t.ok(statements.length > 50)
  t.strictSame(statements.filter((id, index) => statements.indexOf(id) !== index), [], 'twice')
  const named = [...new Set([...SPECIFICATION.match(/\bK\d+\b/g) ?? [], ...proven])]
  t.strictSame(named.filter((id) => !statements.includes(id)).sort(byNumber), [], 'without a statement')
  t.strictSame(statements.filter((id) => !proven.has(id)).sort(byNumber), [], 'without a test')
})

t.test('sources give the reason and no id', async (t) => {
  const sources = sourcesBelow('src')
  t.ok(sources.length > 50)
  t.strictSame(sources.filter((file) => /\bK\d{1,3}\b/.test(readFileSync(`${ROOT}${file}`, 'utf8'))), [])
})

t.test('the architecture page has every folder of the source', async (t) => {
  const architecture = readFileSync(`${ROOT}docs/architecture.md`, 'utf8')
  const folders = ['src', 'src/core'].flatMap((folder) => readdirSync(`${ROOT}${folder}`, { withFileTypes: true }))
    .filter((entry) => entry.isDirectory()).map(({ name }) => `${name}/`)
  t.strictSame(folders.filter((folder) => !architecture.includes(folder)), [])
})

t.test('the files that the documents of developers name are there', async (t) => {
  for (const document of ['docs/architecture.md', 'CONTRIBUTING.md']) {
    const text = readFileSync(`${ROOT}${document}`, 'utf8')
    const paths = Array.from(text.matchAll(/`([a-z-]+\/[\w/.-]+\.ts)`/g), ([, path = '']) => path)
    t.ok(paths.length > 0, document)
    t.strictSame(paths.filter((path) => !existsSync(`${ROOT}${path}`) && !existsSync(`${ROOT}src/${path}`)), [])
  }
})

const VARIABLES = new Set(Object.values(SETTINGS).map(({ variable }) => variable as string))

interface Composed {
  readonly services: Readonly<Record<string, { readonly environment?: object }>>
  readonly 'x-replica'?: { readonly environment: object }
}

/** Variables of the runtime, and of the examples themselves. */
const OTHERS = new Set(['NODE_ENV', 'NODE_OPTIONS'])

t.test('K90: every variable that an example sets is a setting', (t) => {
  const settings = (path: string): string[] => {
    const text = readFileSync(`${ROOT}${path}`, 'utf8')
    const { services, 'x-replica': replica } = path.endsWith('.yml') || path.includes('compose')
      ? load(text) as Composed
      : { services: {}, 'x-replica': undefined }
    const composed = [...Object.values(services), ...replica === undefined ? [] : [replica]]
      .flatMap(({ environment = {} }) => Object.keys(environment))
    const units = Array.from(text.matchAll(/^(?:Environment=)?([A-Z_]+=.*)$/gm), ([, line = '']) => line.split(' '))
      .flat().map((pair) => pair.split('=', 1)[0] ?? '')
    const pods = Array.from(text.matchAll(/\{ name: ([A-Z_]+), value:/g), ([, name = '']) => name)
    return [...composed, ...units, ...pods]
  }
  const paths = [
    'docker-compose.yml', 'deploy/compose/compose.yaml', 'deploy/compose/team.yaml',
    'deploy/production/skillserve.env', 'deploy/systemd/skillserve.service', 'deploy/systemd/skillserve@.service',
    'deploy/kubernetes/base/deployment.yaml', 'deploy/kubernetes/git-sync/sidecar.yaml'
  ]
  for (const path of paths) {
    const names = settings(path)
    t.ok(names.length > 0, path)
    t.strictSame(names.filter((name) => !VARIABLES.has(name) && !OTHERS.has(name)), [], path)
  }
  t.end()
})

t.test('K90: the page of the folder names every example', (t) => {
  const page = readFileSync(`${ROOT}deploy/README.md`, 'utf8')
  for (const entry of readdirSync(`${ROOT}deploy`, { withFileTypes: true })) {
    if (entry.isDirectory()) t.match(page, `\`${entry.name}/\``)
  }
  t.ok(existsSync(`${ROOT}deploy/compose/nginx.conf`))
  t.end()
})

const DOCUMENT = readFileSync(`${ROOT}${OPERATIONS}`, 'utf8')

/** Labels that look like a metric. */
const LABELS = ['http_route', 'http_response_status_code', 'http_request_method', 'mcp_method_name']

/** Names in a query that look like a metric. */
const METRIC = /\b(?:http|mcp|skillserve|nodejs|process)_[a-z_]+\b(?!\s*=)/g

t.test('K71 K73: the tables of metrics and audit events in the documents are those of the source', async (t) => {
  t.equal(DOCUMENT, withMetrics(DOCUMENT))
})

t.test('K71: dashboard and alert rules name metrics that exist', async (t) => {
  const { registry } = createMetrics({ skills: createSkillManager({ projectRoots: [] }), version: '' })
  const types = new Map((await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)]))
  for (const file of ['deploy/grafana/skillserve.json', 'deploy/prometheus/alerts.yml']) {
    const queries = readFileSync(`${ROOT}${file}`, 'utf8')
      .replace(/\bby \([^)]*\)|\blabel_values\(|\{[^{}]*"?\}/g, (text) => text.startsWith('label') ? text : ' ')
    const names = new Set((queries.match(METRIC) ?? []).filter((name) => !LABELS.includes(name)))
    t.ok(names.size > 10, file)
    for (const name of names) {
      const family = name.replace(/_(?:bucket|count|sum)$/, '')
      t.ok(types.has(name) ? types.get(name) !== 'histogram' : types.get(family) === 'histogram', `${file}: ${name}`)
    }
  }
  const dashboard = JSON.parse(readFileSync(`${ROOT}deploy/grafana/skillserve.json`, 'utf8')) as { panels: unknown }
  t.ok(Array.isArray(dashboard.panels))
})

const skip = spawnSync('promtool', ['--version']).error !== undefined && 'promtool is not installed'

t.test('K71: promtool accepts rules and scrape configuration, and each alert fires alone', { skip }, async (t) => {
  const checks = [
    ['check', 'rules', 'alerts.yml'], ['check', 'config', 'scrape.yml'],
    ['test', 'rules', '../../test/project/alerts.yml']
  ]
  const options = { cwd: `${ROOT}deploy/prometheus`, encoding: 'utf8' } as const
  for (const args of checks) {
    const { status, stdout, stderr } = spawnSync('promtool', args, options)
    t.equal(status, 0, `${stdout}${stderr}`)
  }
})
