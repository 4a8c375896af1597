import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'
import t, { type Test } from 'tap'
import { startServer } from '../helper/fault-server.ts'
import { startProcess } from '../helper/process.ts'
import { freePort } from '../helper/proxies.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const SKILLS = fileURLToPath(new URL('../../skills', import.meta.url))
/** Where the documents say that the scripted model listens. */
const SCRIPTED_MODEL = 'http://127.0.0.1:8081'
const QUESTION = 'What is the weather in Lyon?'

/** The programs as JavaScript: `tsx`, which the documents name, takes longer to start than most of them run. */
const built = t.testdir({})
buildExamples(['agent-loop', 'embedded', 'fake-model', 'mcp-client'], built)

/** Programs with the SDK of a provider, which `npm run test:clients` installs. */
const SDK_EXAMPLES = ['anthropic', 'gemini', 'openai-responses']
const CLIENTS = `${ROOT}test/clients/`
const withoutSdk = !existsSync(`${CLIENTS}node_modules/openai`) && 'npm run test:clients installs its SDK'
if (withoutSdk === false) buildExamples(SDK_EXAMPLES, `${CLIENTS}.examples`)

function buildExamples (names: readonly string[], outdir: string): void {
  const entryPoints = names.map((name) => `${ROOT}examples/${name}.mts`)
  const options = { bundle: true, packages: 'external', format: 'esm', platform: 'node', tsconfigRaw: '{}' } as const
  buildSync({ entryPoints, outdir, ...options })
}

function example (name: string): readonly string[] {
  return [process.execPath, `${SDK_EXAMPLES.includes(name) ? `${CLIENTS}.examples` : built}/${name}.js`]
}

/** Starts a command in the checkout; the environment has nothing but PATH and what is given. */
function launch (t: Test, [command = '', ...args]: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const variables = { PATH: process.env['PATH'], ...env }
  const child = spawn(command, args, { cwd: ROOT, env: variables, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => { child.kill('SIGKILL') })
  return child
}

async function run (t: Test, command: readonly string[], env?: Readonly<Record<string, string>>) {
  const child = launch(t, command, env)
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { stdout, stderr, code: code as number | null }
}

/** The scripted model of the examples; gives its origin. */
async function startModel (t: Test): Promise<string> {
  const child = launch(t, [...example('fake-model'), '0'])
  child.stderr.pipe(process.stderr)
  const [line] = await once(child.stdout, 'data') as [Buffer]
  return /http:\S+/.exec(line.toString())?.[0] ?? ''
}

function isInstalled (command: string): boolean {
  return spawnSync(command, ['--version']).status === 0
}

function lengthOf (path: string): number {
  return readFileSync(`${SKILLS}/${path}`, 'utf8').length
}

/** What a loop prints that lists the skills, reads one, then its files, and answers with what it has read. */
function conversation (): string {
  return [
    '> list_skills {}',
    '> get_skill {"skill_name":"weather"}',
    '> read_file_in_skill {"skill_name":"weather","file_path":"docs/api_reference.md"}',
    '> read_file_in_skill {"skill_name":"weather","file_path":"config.json"}',
    `I have read the skill weather, docs/api_reference.md (${lengthOf('weather/docs/api_reference.md')} characters), ` +
      `config.json (${lengthOf('weather/config.json')} characters).`,
    ''
  ].join('\n')
}

interface Loop {
  readonly name: string
  readonly command: readonly string[]
  readonly missing?: string | false
  /** The environment that makes it ask the model at this origin. */
  env (origin: string): Readonly<Record<string, string>>
  /** What it says about a server that answers 401 `no key`. */
  refused (origin: string): string
}

/** The variables in the first lines of an example that asks the scripted model, here at its own origin. */
function shownEnv (name: string, origin: string): Readonly<Record<string, string>> {
  const source = readFileSync(`${ROOT}examples/${name}`, 'utf8')
  const [, assignments = ''] = /^ \* {3}((?:\w+=\S+ )*\w+_BASE_URL=\S+) npx tsx /m.exec(source) ?? []
  t.match(assignments, SCRIPTED_MODEL, name)
  const pairs = assignments.replace(SCRIPTED_MODEL, origin).split(' ').map((assignment) => assignment.split('='))
  return Object.fromEntries(pairs)
}

const chat = {
  env: (origin: string) => ({ OPENAI_BASE_URL: `${origin}/v1` }),
  refused: (origin: string) => `${origin}/v1/chat/completions answered 401: no key`
}

const loops: readonly Loop[] = [
  { name: 'agent-loop.mts', command: example('agent-loop'), ...chat },
  {
    name: 'agent_loop.py',
    command: ['python3', 'examples/agent_loop.py'],
    missing: !isInstalled('python3') && 'python3 is not installed',
    ...chat
  },
  ...['openai-responses', 'anthropic', 'gemini'].map((name) => ({
    name: `${name}.mts`,
    command: example(name),
    missing: withoutSdk,
    env: (origin: string) => shownEnv(`${name}.mts`, origin),
    refused: () => '401'
  }))
]

const [service, model] = await Promise.all([startProcess(t, { args: [SKILLS] }), startModel(t)])

for (const { name, command, missing = false, env, refused } of loops) {
  t.test(`${name} lists the skills, reads one and its files, and answers`, { skip: missing }, async (t) => {
    const { stdout, stderr, code } = await run(t, [...command, QUESTION], { SKILLS_URL: service.url, ...env(model) })
    t.equal(stdout, conversation(), stderr)
    t.equal(code, 0, stderr)
  })

  t.test(`${name} stops with the answer of a server that refuses`, { skip: missing }, async (t) => {
    const { url: origin } = await startServer(t, (_request, response) => { response.writeHead(401).end('no key') })
    const { stderr, code } = await run(t, command, { SKILLS_URL: service.url, ...env(origin) })
    t.match(stderr, refused(origin))
    t.equal(code, 1)
  })
}

t.test('mcp-client.mts lists the skills and reads the files of one', async (t) => {
  const env = { SKILLS_URL: service.url }
  const { stdout, stderr, code } = await run(t, [...example('mcp-client'), 'weather'], env)
  t.equal(code, 0, stderr)
  t.match(stdout, /^calculator: Provides basic arithmetic operations/m)
  t.match(stdout, /^skill:\/\/weather\/config\.json \(application\/json, 153 bytes\)$/m)
  t.match(stdout, /^skill:\/\/weather\/docs\/api_reference\.md \(text\/markdown, \d+ bytes\)$/m)
  t.match(await run(t, [...example('mcp-client'), 'missing'], env), { code: 1, stderr: 'there is no skill missing\n' })
})

t.test('K33: embedded.mts is an app with the service below a prefix, through every kind of request', async (t) => {
  const child = launch(t, [...example('embedded'), '0'])
  child.stderr.pipe(process.stderr)
  let url: string | undefined
  for await (const line of createInterface({ input: child.stdout })) {
    url = /Server listening at (http:[^"]+)/.exec(line)?.[1]
    if (url !== undefined) break
  }
  child.stdout.resume()
  const get = async (path: string, init: RequestInit = {}) => await (await fetch(`${url}${path}`, init)).text()
  const names = readdirSync(SKILLS)
  t.same(JSON.parse(await get('/')), { skills: names })
  t.same(JSON.parse(await get('/agents/skills')), { skills: names })
  t.match(JSON.parse(await get('/agents/skills/nope')), { code: 'skill_not_found' })
  t.match(await get('/agents/skills/weather/files/config.json', { headers: { range: 'bytes=0-3' } }), /^.{4}$/s)
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ name: 'list_skills', arguments: {} })
  t.match(await get('/agents/agent/tool-call', { method: 'POST', headers, body }), /weather/)
  const page = await get('/agents/', { headers: { accept: 'text/html' } })
  const [, stylesheet = ''] = /href="\.(\/ui\/assets\/[^"]+\.css)"/.exec(page) ?? []
  t.equal((await fetch(`${url}/agents${stylesheet}`)).status, 200)
})

t.test('the README shows what the loops print', async (t) => {
  const readme = readFileSync(`${ROOT}README.md`, 'utf8')
  t.ok(readme.includes(`\`\`\`text\n${conversation()}\`\`\``), conversation())
})

const skipCurl = !isInstalled('curl') && 'curl is not installed'

t.test('tool-call.sh shows a result in each dialect, and those of two calls', { skip: skipCurl }, async (t) => {
  const { stdout, stderr, code } = await run(t, ['sh', 'examples/tool-call.sh'], { SKILLS_URL: service.url })
  t.equal(code, 0, stderr)
  const lines = stdout.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const results = lines.map((line) => JSON.parse(line) as unknown)
  t.match(results, [
    { role: 'tool', tool_call_id: 'call_1', name: 'list_skills', content: /"weather"/ },
    { type: 'function_call_output', call_id: 'call_1', output: /"weather"/ },
    { type: 'tool_result', tool_use_id: 'toolu_1', content: /"weather"/, is_error: false },
    { functionResponse: { id: 'call-1', name: 'list_skills', response: { output: /"weather"/ } } },
    { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: /"weather"/ }], isError: false } },
    [{ tool_call_id: 'call_1', content: /"weather"/ }, { tool_call_id: 'call_2', content: /Skill 'missing' not found/ }]
  ])
  t.equal(results.length, 6)
})

t.test('each example asks whether skillserve is running when nothing answers', async (t) => {
  const SKILLS_URL = `http://127.0.0.1:${await freePort()}`
  const examples = ['mcp-client', ...withoutSdk === false ? ['anthropic'] : []].map(example)
  // Copied into a folder of `npm init -y`, with TypeScript.
  const folder = t.testdir({ 'package.json': '{ "name": "mine", "version": "1.0.0" }' })
  cpSync(`${ROOT}examples/agent-loop.mts`, `${folder}/agent-loop.mts`)
  examples.push([process.execPath, '--import', import.meta.resolve('tsx'), `${folder}/agent-loop.mts`])
  if (isInstalled('python3')) examples.push(['python3', 'examples/agent_loop.py'])
  if (isInstalled('curl')) examples.push(['sh', 'examples/tool-call.sh'])
  await Promise.all(examples.map(async (command) => {
    const { stderr, code } = await run(t, command, { SKILLS_URL, ANTHROPIC_API_KEY: 'x' })
    t.ok(stderr.startsWith(`is skillserve running at ${SKILLS_URL}?`), `${command.join(' ')}: ${stderr}`)
    t.equal(code, 1)
  }))
})
