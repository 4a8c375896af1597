import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startProcess } from '../helper/process.ts'
import { skills } from '../helper/skills.ts'

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url))

/** The code of the command line: what a process loads (`npm run build` comes before). */
function bundle (): string[] {
  const chunks = readdirSync(`${DIST}chunks`).filter((file) => file.endsWith('.js'))
  return ['cli/main.js', ...chunks.map((file) => `chunks/${file}`)].map((file) => readFileSync(DIST + file, 'utf8'))
}

const STATIC_IMPORT = /^(?:import|\} from) ?.*"\.\/([^"]+\.js)"/gm

/** The code of a chunk and of all that is loaded with it. */
function loadedWith (chunk: string, loaded = new Map<string, string>()): Map<string, string> {
  if (loaded.has(chunk)) return loaded
  const code = readFileSync(`${DIST}chunks/${chunk}`, 'utf8')
  loaded.set(chunk, code)
  for (const [, imported = ''] of code.matchAll(STATIC_IMPORT)) loadedWith(imported, loaded)
  return loaded
}

t.test('help and errors of the command line do not load the service', (t) => {
  const [, run = ''] = /import\("\.\.\/chunks\/(run-[^"]+)"\)/.exec(readFileSync(`${DIST}cli/main.js`, 'utf8')) ?? []
  const [, server = ''] = /import\("\.\/(server-[^"]+)"\)/.exec(readFileSync(`${DIST}chunks/${run}`, 'utf8')) ?? []
  const bytes = (chunk: string) => [...loadedWith(chunk).values()].join('').length
  t.ok(bytes(run) < 60_000, `${bytes(run)} bytes`)
  t.ok(bytes(server) > 1_000_000, `${bytes(server)} bytes`)
  t.end()
})

t.test('the bundle names no function as it is made, which took half of the time of a request', (t) => {
  const code = bundle()
  t.ok(code.length > 5, 'what is loaded late has files of its own')
  t.notOk(code.some((text) => text.includes('__name(')))
  t.end()
})

t.test('the built program finds what its pages are made of', async (t) => {
  const { url } = await startProcess(t, { args: [t.testdir(skills('demo'))] })
  for (const page of ['/', '/ui/skills/demo', '/ui/status', '/ui/nowhere']) {
    const html = await (await fetch(url + page, { headers: { accept: 'text/html' } })).text()
    const assets = Array.from(html.matchAll(/(?:href|src)="([^"]*assets\/[^"]+)"/g), ([, asset = '']) => asset)
    t.ok(assets.length >= 2, `${page}: ${html.slice(0, 200)}`)
    for (const asset of assets) t.equal((await fetch(new URL(asset, url + page))).status, 200, asset)
  }
})
