import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { githubState } from '../../src/sources/git/github.ts'
import type { GitSource } from '../../src/sources/git/git-source.ts'
import { shellWord } from '../../src/operator/shell-word.ts'
import { githubSnippets, snippets } from '../../src/ui/snippets.ts'
import { buildService } from '../helper/build.ts'
import { openPage } from '../helper/pages.ts'
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

  await t.test('GitHub CLI: nothing for a skill that does not come from there', async (t) => {
    t.notMatch((await openPage(`${url}/ui/skills/weather`)).text, 'gh skill install')
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

t.test('K76: a skill from github.com is installed from there, in the served revision', async (t) => {
  const commit = '0123456789abcdef0123456789abcdef01234567'
  const source = (url: string, prefix = ''): GitSource =>
    ({ kind: 'git', name: 'skills', layout: 'tree', url, ref: undefined, path: '', prefix })
  const line = (url: string, revision: string | undefined, prefix = '', name = 'weather') =>
    githubSnippets(name, githubState(source(url, prefix), revision))[0]?.text
  for (const url of [
    'https://github.com/acme/skills', 'https://github.com/acme/skills.git', 'ssh://git@github.com/acme/skills.git',
    'https://www.github.com/acme/skills/'
  ]) {
    for (const revision of [`main@sha1:${commit}`, `v1.2@sha1:${commit}`, `sha1:${commit}`]) {
      t.equal(line(url, revision), `gh skill install acme/skills weather@${commit}`, url)
    }
  }
  const [github, revision] = ['https://github.com/acme/skills', `sha1:${commit}`] as const
  t.equal(line(github, revision, 'acme-', 'acme-weather'), `gh skill install acme/skills weather@${commit}`)
  t.equal(line(github, revision, '', 'a b'), `gh skill install acme/skills 'a b@${commit}'`)
  t.equal(line('https://github.com/acme/skills', undefined), undefined, 'nothing is published yet')
  for (const url of [
    'https://gitlab.com/acme/skills', 'https://github.com.example/acme/skills', 'https://x/github.com/acme/skills',
    'file:///srv/acme/skills'
  ]) t.equal(line(url, `sha1:${commit}`), undefined, url)

  const asked: string[] = []
  const githubOf = (name: string) => {
    asked.push(name)
    return githubState(source('https://github.com/acme/skills'), `main@sha1:${commit}`)
  }
  const { url } = await buildService(
    t, { files: { weather: skill('weather') }, options: { sources: { status: [], hooks: [], githubOf } } }
  )
  t.match(
    (await openPage(`${url}/ui/skills/weather`)).text,
    `<pre tabindex="0"><code>gh skill install acme/skills weather@${commit}</code></pre>`
  )
  t.strictSame(asked, ['skills'], 'the root of the skill is asked for')
})
