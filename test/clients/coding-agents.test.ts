import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import { buildGuarded, newSecret } from '../helper/guarded.ts'
import { skill } from '../helper/skills.ts'

const DOCUMENT = readFileSync(new URL('../../docs/access.md', import.meta.url), 'utf8')
const PUBLIC = 'https://skills.example'

const has = (program: string): boolean => spawnSync(program, ['--version']).status === 0
const skipWithout = (program: string, name: string) =>
  !has(program) && `${program} is not installed: npm install --global ${name}`

/** A service for the token, and a home of one's own for a client. */
async function start (t: Test) {
  const ann = newSecret('ann', 'groups: [docs]')
  const service = await buildGuarded(t, {
    roots: {
      docs: { guide: skill('guide') }, ops: { pager: skill('pager') }
    },
    access: `tokens:\n  - ${ann.entry}\nrules:\n  - { groups: [docs], roots: [docs] }\n`
  })
  const env = {
    ...process.env, HOME: service.folder, CODEX_HOME: join(service.folder), TOKEN: ann.text, SKILLS_TOKEN: ann.text
  }
  return {
    ...service,
    ann,
    env,
    /** Runs the line of the document that begins so, with the address of the service. */
    async runDocumented (begin: string): Promise<string> {
      const line = DOCUMENT.split('\n').find((each) => each.startsWith(begin))
      t.ok(line, 'the document has the line')
      return await run(line?.replaceAll(PUBLIC, service.url) ?? '', env, service.folder)
    }
  }
}

/** Not in this turn: the service is in this process. */
async function run (command: string, env: NodeJS.ProcessEnv, cwd: string): Promise<string> {
  const child = spawn('sh', ['-c', command], { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => { output += chunk.toString() })
  }
  await new Promise((resolve) => child.once('close', resolve))
  return output
}

t.test('K62: Claude Code connects with the documented line', {
  skip: skipWithout('claude', '@anthropic-ai/claude-code')
}, async (t) => {
  const { runDocumented, env, folder, logText } = await start(t)
  await runDocumented('claude mcp add ')
  t.match(await run('claude mcp list', env, folder), /skills: http\S+ \(HTTP\) - . Connected/)
  t.match(logText(), /"url":"\/mcp","status":200,.*"principal":"ann"/)
})

t.test('K62: Codex connects with the documented line', { skip: skipWithout('codex', '@openai/codex') }, async (t) => {
  const { runDocumented, env, folder, logText } = await start(t)
  await runDocumented('codex mcp add ')
  const server = spawn('codex', ['app-server'], { env, cwd: folder, stdio: ['pipe', 'pipe', 'ignore'] })
  t.teardown(() => { server.kill() })
  const send = (message: object): void => { server.stdin.write(`${JSON.stringify(message)}\n`) }
  send({ id: 1, method: 'initialize', params: { clientInfo: { name: 'test', title: 'test', version: '1' } } })
  send({ method: 'initialized' })
  send({ id: 2, method: 'mcpServerStatus/list', params: {} })
  for await (const line of createInterface(server.stdout)) {
    const { id, result } = JSON.parse(line) as {
      readonly id?: number
      readonly result?: { readonly data: ReadonlyArray<{ readonly name: string, readonly tools: object }> }
    }
    if (id !== 2) continue
    t.match(result?.data, [{ name: 'skills', tools: { get_skill: Object } }])
    break
  }
  t.match(logText(), /"url":"\/mcp","status":200,.*"principal":"ann"/)
})

t.test('K62: the documented configuration of VS Code has an address and headers that an MCP client ' +
  'gets in with', async (t) => {
  const { url, ann } = await start(t)
  const [, text = ''] = /`\.vscode\/mcp\.json`:\n\n```json\n([^]*?)```/.exec(DOCUMENT) ?? []
  const { inputs, servers: { skills } } = JSON.parse(text) as {
    readonly inputs: ReadonlyArray<{ readonly type: string, readonly id: string, readonly password: boolean }>
    readonly servers: {
      readonly skills: {
        readonly type: string
        readonly url: string
        readonly headers: Readonly<Record<string, string>>
      }
    }
  }
  t.match(inputs, [{ type: 'promptString', id: 'token', description: String, password: true }],
    'the editor asks for what the headers name')
  t.equal(skills.type, 'http')
  const headers = Object.fromEntries(
    Object.entries(skills.headers).map(([name, value]) => [name, value.replace(/\$\{input:token\}/, ann.text)]))
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(skills.url.replace(PUBLIC, url)),
    { requestInit: { headers } }))
  t.teardown(() => client.close())
  t.match(await client.callTool({ name: 'list_skills', arguments: {} }), { content: [{ text: /guide/ }] })
})
