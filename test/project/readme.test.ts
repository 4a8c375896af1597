import { execFile, spawnSync } from 'node:child_process'
import { appendFileSync, cpSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { load } from 'js-yaml'
import t from 'tap'
import { runCommandLine } from '../../src/cli/run.ts'
import { MAX_HASHED_FIRST_BYTES } from '../../src/core/read/file-cache.ts'
import { MAX_IGNORE_FILE_BYTES, MAX_IGNORE_PATTERNS } from '../../src/core/read/ignore-file.ts'
import * as coreLimits from '../../src/core/shared/limits.ts'
import * as httpLimits from '../../src/http/limits.ts'
import * as mcpLimits from '../../src/mcp/limits.ts'
import { MORE_ENDPOINTS } from '../../src/routes/endpoints.ts'
import { MAX_PAGE_ENTRIES, MAX_QUERY_CODE_POINTS } from '../../src/schemas/catalog.ts'
import * as verdictLimits from '../../src/verdicts/limits.ts'
import * as toolLimits from '../../src/tools/limits.ts'
import { readConfigFile } from '../../src/config/config-file.ts'
import { DOCUMENTS as TABLES, withTables } from '../../scripts/tables.ts'
import { EXAMPLE_SKILL, withErrors } from '../../scripts/example-skill.ts'
import { withFindings, withTargets } from '../../scripts/finding-codes.ts'
import { FINDINGS } from '../../src/validate/findings.ts'
import { FINDING_EXAMPLES, WITHOUT_EXAMPLE } from '../helper/finding-examples.ts'
import { createTools } from '../../src/tools/tools.ts'
import { startProcess } from '../helper/process.ts'
import { skill } from '../helper/skills.ts'

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

t.test('every curl command gets the answer that is shown', { skip: !hasCurl && 'curl is not installed' }, async (t) => {
  const service = await startProcess(t, { args: [`${ROOT}skills`] })
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
  const cwd = t.testdir()
  cpSync(`${ROOT}skills`, join(cwd, 'skills'), { recursive: true })
  for (const { document, line, text, output = '' } of commands) {
    const args = text.trim().split(' ').slice(1)
    let printed = ''
    const print = (text: string): void => { printed += text }
    await runCommandLine(args, { env: {}, cwd, print }, print)
    t.match(printed.trimEnd(), patternOf(output), `${document}:${line}`)
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
  const root = t.testdir({ calculator: skill('calculator') })
  const service = await startProcess(t, { args: [root] })
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
  const edits = setInterval(() => { appendFileSync(join(root, 'calculator/SKILL.md'), '!') }, 300)
  t.teardown(() => { clearInterval(edits) })
  const { stdout } = await run
  clearInterval(edits)
  t.match(stdout, /^all skills: calculator$/m)
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
