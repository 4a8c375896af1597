import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { createProgram } from '../../src/cli/program.ts'
import { runHere } from '../helper/command-line.ts'
import { startProcess } from '../helper/process.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const SHELL = /^```sh\n([^]*?)^```$/gm

/** What ends by itself, and needs nothing but the checkout. */
const WORDS = 'token|access|lock|sign|verify|validate|export|completion|help|version'
const COMMAND = new RegExp(`^(?:skillserve (?:${WORDS})|mkdir|cp|openssl) .*`, 'gm')

/** The folder of a reader who follows a document, with the example skills. */
function createFolder (t: Test) {
  const folder = t.testdir({})
  cpSync(`${ROOT}skills`, join(folder, 'skills'), { recursive: true })
  return {
    folder,
    async run (command: string): Promise<string> {
      const [program, ...args] = command.split(' ')
      const { code, stdout, stderr } = program === 'skillserve'
        ? await runHere(args, { cwd: folder })
        : { code: 0, stdout: execFileSync('sh', ['-c', command], { cwd: folder, stdio: 'pipe' }).toString(), stderr: '' }
      t.equal(code, 0, `${command}\n${stderr}`)
      return stdout
    }
  }
}

function commandsOf (document: string): string[] {
  const blocks = Array.from(readFileSync(`${ROOT}docs/${document}`, 'utf8').matchAll(SHELL), ([, text = '']) => text)
  return blocks.flatMap((text) => Array.from(text.matchAll(COMMAND), ([command]) => command))
}

function yamlOf (document: string, start: string): string {
  const text = readFileSync(`${ROOT}docs/${document}`, 'utf8')
  const begin = text.indexOf(`\`\`\`yaml\n${start}`)
  return text.slice(begin + '```yaml\n'.length, text.indexOf('```\n', begin + 3))
}

t.test('K63: docs/access.md: two teams have their own skills after its commands', async (t) => {
  const { folder, run } = createFolder(t)
  const file = join(folder, 'team/access.yaml')
  mkdirSync(join(folder, 'team'))
  writeFileSync(file, yamlOf('access.md', 'tokens:'))
  for (const command of commandsOf('access.md')) {
    const printed = await run(command)
    // As the document says: the line that the command prints, instead of the line that the document shows.
    const [line = '', name = ''] = /^ *- \{ name: "([\w-]+)".*$/m.exec(printed) ?? []
    const shown = new RegExp(`^ *- \\{ name: "${name}".*$`, 'm')
    if (name !== '') writeFileSync(file, readFileSync(file, 'utf8').replace(shown, () => line))
    if (command.includes(' access ')) t.match(printed, /sees 2 skills\nweather +common .*\ncalculator +docs /)
  }
})

const skip = spawnSync('openssl', ['version']).status !== 0 && 'openssl is not installed'

t.test('K95: docs/trust.md: skills are locked, signed and verified by its commands', { skip }, async (t) => {
  const { folder, run } = createFolder(t)
  writeFileSync(join(folder, 'trust.yaml'), yamlOf('trust.md', '# trust.yaml'))
  const printed: string[] = []
  for (const command of commandsOf('trust.md')) printed.push(await run(command))
  t.match(printed[0], 'skills.lock: 6 skills')
  t.match(printed.at(-1), /weather/)
  const service = await startProcess(t, { args: ['skills', '--trust', 'trust.yaml'], cwd: folder })
  t.match(await (await fetch(`${service.url}/skills`)).json(), { skills: ['brand-assets', 'calculator'] })
})

t.test('K82: docs/configuration.md names every command', (t) => {
  const text = readFileSync(`${ROOT}docs/configuration.md`, 'utf8')
  const { commands } = createProgram(() => {}, async () => {})
  for (const command of commands.map((each) => each.name())) {
    t.match(text, new RegExp(`^\\| .*\`skillserve \\[?${command}\\b`, 'm'), command)
  }
  t.end()
})

const others = readdirSync(`${ROOT}docs`).filter((name) =>
  name.endsWith('.md') && name !== 'access.md' && name !== 'trust.md')
for (const document of others) {
  const commands = commandsOf(document)
  if (commands.length === 0) continue
  t.test(`K82: docs/${document}: its commands run`, async (t) => {
    const { folder, run } = createFolder(t)
    mkdirSync(join(folder, 'more-skills'))
    for (const command of commands) t.not(await run(command), '', command)
  })
}
