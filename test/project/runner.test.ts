import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { renderReport, totalsOf } from '../runner/report.ts'
import { type FileResults, TapResults } from '../runner/tap-results.ts'

const TESTS = `
t.test('sums', async (t) => {
  t.equal(1 + 1, 2)
  t.same({ a: 1, b: 2 }, { a: 1, b: 3 })
  await t.test('of numbers', async () => { throw new Error('no sum') })
  await t.test('of words', { skip: 'no words' }, async () => {})
})
t.test('differences', (t) => {
  t.plan(2)
  t.ok(true)
  t.end()
})`

/** Runs tests with the real tap, in a process, and reads what it writes. */
async function run (folder: string, tests: string): Promise<FileResults> {
  const file = join(folder, 'some.test.mjs')
  writeFileSync(file, `import t from ${JSON.stringify(pathToFileURL(join(process.cwd(), 'node_modules/tap/dist/esm/index.js')).href)}${tests}`)
  const { stdout } = spawnSync(process.execPath, [file], { env: { PATH: process.env['PATH'], TAP: '1' }, cwd: folder })
  const tap = new TapResults()
  const completed = once(tap.stream, 'complete')
  tap.stream.end(stdout)
  await completed
  return tap.results()
}

t.test('the summary has counts first and failures last, each with its line, its names and the difference', async (t) => {
  const results = await run(t.testdir(), TESTS)
  t.match(results, { tests: 3, failedTests: 3, assertions: 5, skipped: [{ path: ['sums', 'of words'], reason: 'no words' }] })
  const runs = [{ file: 'some.test.ts', files: 1, seconds: 2, results, stderr: 'a note\n' }]
  t.same(totalsOf(runs), { passed: 0, failed: 3 })
  const report = renderReport(runs, 65)
  t.match(report, /^Tests: 0 passed, 3 failed, 1 skipped\n5 assertions in 1 file in 1 min 5 s\n\nFailures:\n/m)
  t.match(report, /\n\S*some\.test\.mjs:4 {2}sums > should be equivalent\n[^]*\n {2}- {2}"b": 3,\n {2}\+ {2}"b": 2,\n/)
  t.match(report, /\n\S*some\.test\.mjs:5 {2}sums > of numbers > no sum\n/)
  t.match(report, /\n\S*some\.test\.mjs:9 {2}differences > .*plan/)
  t.match(report, / {2}some\.test\.ts wrote to stderr:\n {2}a note$/)
})

t.test('a process that breaks is a failed test, whatever it has said before', async (t) => {
  const results = await run(t.testdir(), "\nt.test('fine', async (t) => { t.pass() })")
  const runs = [{ file: 'some.test.ts', files: 1, seconds: 1, results, broken: 'ended by SIGKILL', stderr: '' }]
  t.same(totalsOf(runs), { passed: 1, failed: 1 })
  t.match(renderReport(runs, 1), /Tests: 1 passed, 1 failed, 0 skipped\n[^]*\nsome\.test\.ts {2}ended by SIGKILL$/)
})
