import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url))

/** The code of the command line: what a process loads (`npm run build` comes before). */
function bundle (): string[] {
  const chunks = readdirSync(`${DIST}chunks`).filter((file) => file.endsWith('.js'))
  return ['cli/main.js', ...chunks.map((file) => `chunks/${file}`)].map((file) => readFileSync(DIST + file, 'utf8'))
}

t.test('the bundle names no function as it is made, which took half of the time of a request', (t) => {
  const code = bundle()
  t.ok(code.length > 5, 'what is loaded late has files of its own')
  t.notOk(code.some((text) => text.includes('__name(')))
  t.end()
})
