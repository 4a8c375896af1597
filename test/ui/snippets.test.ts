import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { shellWord } from '../../src/operator/shell-word.ts'
import { snippets } from '../../src/ui/snippets.ts'
import { buildService } from '../helper/build.ts'
import { connectClient } from '../helper/mcp.ts'
import { OFFLINE } from '../helper/skills-client.ts'
import { skill, skillText } from '../helper/skills.ts'

const SKILLS_CLI = fileURLToPath(new URL('../../node_modules/skills/bin/cli.mjs', import.meta.url))

/**
 * A shell whose `npx skills` is the client of this checkout, offline and without questions, and whose `claude` notes
 * its arguments.
 */
function createShell (t: Test): { readonly cwd: string, run (line: string): Promise<string> } {
  const folder = t.testdir({ bin: {}, cwd: {} })
  const cwd = join(folder, 'cwd')
  const bin = join(folder, 'bin')
  const skillsCli = `exec '${process.execPath}' --import ${shellWord(OFFLINE)} ${shellWord(SKILLS_CLI)}`
  for (const [name, line] of [
    ['npx', `[ "$1" = skills ] && shift && ${skillsCli} "$@" -y --agent claude-code`],
    ['claude', `exec '${process.execPath}' -e 'console.log(JSON.stringify(process.argv.slice(1)))' -- "$@"`]
  ] as const) writeFileSync(join(bin, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 })
  const PATH = `${bin}${delimiter}${process.env['PATH'] ?? ''}`
  const env = { PATH, HOME: cwd, DISABLE_TELEMETRY: '1', DO_NOT_TRACK: '1', CI: '1' }
  return { cwd, run: async (line) => (await promisify(execFile)('sh', ['-c', line], { cwd, env })).stdout }
}

t.test('K76: each snippet runs as it is', async (t) => {
  const { url } = await buildService(t, { files: { weather: skill('weather'), calculator: skill('calculator') } })
  const of = (id: string, name?: string) => {
    const snippet = snippets(url, name).find((snippet) => snippet.id === id)
    if (snippet === undefined) throw new Error(`there is no snippet ${id}`)
    return snippet.text
  }
  /** What a configuration of an MCP client names. */
  const connect = async (t: Test, address: string) => {
    t.equal(address, `${url}/mcp`)
    const client = await connectClient(t, url, 'auto')
    t.match((await client.listTools()).tools.map(({ name }) => name), ['list_skills'])
  }

  await t.test('curl: the list, a SKILL.md, an archive', async (t) => {
    const { cwd, run } = createShell(t)
    t.strictSame(JSON.parse(await run(of('curl'))), { skills: ['calculator', 'weather'] })
    t.equal(await run(of('curl', 'weather')), skillText('weather'))
    await run(of('zip', 'weather'))
    t.strictSame(readdirSync(cwd), ['weather.zip'])
  })

  await t.test('skills CLI: one skill, and all', async (t) => {
    const { cwd, run } = createShell(t)
    const installed = () => readdirSync(join(cwd, '.claude/skills'))
    await run(of('skills', 'weather'))
    t.strictSame(installed(), ['weather'])
    t.equal(readFileSync(join(cwd, '.claude/skills/weather/SKILL.md'), 'utf8'), skillText('weather'))
    await run(of('skills'))
    t.strictSame(installed(), ['calculator', 'weather'])
  })

  await t.test('tool definitions, and the list for a prompt', async (t) => {
    const { run } = createShell(t)
    const definitions = JSON.parse(await run(of('tools'))) as readonly unknown[]
    t.match(definitions[0], { type: 'function', function: { name: String } })
    t.match(await run(of('prompt')), /<available_skills>[^]*calculator[^]*weather/)
  })

  await t.test('Claude Code, Cursor, VS Code, Gemini CLI: an MCP client finds the tools at the address', async (t) => {
    const words = JSON.parse(await createShell(t).run(of('claude-code'))) as readonly string[]
    t.strictSame(words.slice(0, 5), ['mcp', 'add', '--transport', 'http', 'skills'])
    const parsed = (id: string) =>
      JSON.parse(of(id)) as Readonly<Record<string, { readonly skills: Readonly<Record<string, string>> }>>
    t.equal(parsed('vscode')['servers']?.skills['type'], 'http')
    for (const address of [
      words[5], parsed('cursor')['mcpServers']?.skills['url'], parsed('vscode')['servers']?.skills['url'],
      parsed('gemini')['mcpServers']?.skills['httpUrl']
    ]) await connect(t, address ?? '')
  })

  await t.test('OpenCode: the index is below the address', async (t) => {
    type Config = { readonly skills: { readonly urls: readonly string[] } }
    const { skills: { urls: [address = ''] } } = JSON.parse(of('opencode')) as Config
    t.match(await (await fetch(new URL('index.json', address))).json(), { skills: { length: 2 } })
  })
})

t.test('K76: names of any characters come through the shell unchanged', async (t) => {
  const names = ['a b?c#d%', 'it\'s $(touch x) `touch y` "q"', '技能', '*;&|<>~!']
  const { url } = await buildService(
    t, { files: Object.fromEntries(names.map((name) => [name, { 'SKILL.md': `Text of ${name}` }])) }
  )
  await t.test('as words, and in addresses', async (t) => {
    const { cwd, run } = createShell(t)
    for (const name of names) {
      t.equal(await run(`printf %s ${shellWord(name)}`), name)
      t.equal(await run(snippets(url, name)[0]?.text ?? ''), `Text of ${name}`)
    }
    t.strictSame(readdirSync(cwd), [])
  })
})
