/**
 * Runs test files, each in a process of its own, and prints what a person reads: the totals, and the failures last.
 *
 *     tsx test/runner/run.ts [--unit] [--jobs N] [FILE|FOLDER...]
 *
 * It translates the tree once and starts plain Node, where the command line of tap loads a translator and a tracer of
 * modules into every process: one to three seconds of CPU time for each of a hundred files.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type FileRun, renderReport, totalsOf } from './report.ts'
import { TapResults } from './tap-results.ts'
import { transpile } from './transpile.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TIMES = join(ROOT, '.tap/seconds.json')

/** One test file; tap itself ends the tests of a file some time before. */
const FILE_SECONDS = 300
const KILL_AFTER_SECONDS = FILE_SECONDS + 30

/** What is no unit test: some folders, hundreds of changes or thousands of reads on a real disk, and what uses the helpers that start processes. */
const WHOLE_SERVICE = /^test\/(?:adversarial|figures|project)\/|\/(?:checkout|consistency|file-edits|freshness|live-reload|skill-manager-disks)\.test\.ts$/
const STARTS_PROCESSES = /\/helper\/(?:process|skills-client|swapper)\.ts'/
/** Nothing else runs beside what is timed. */
const ALONE = /^test\/figures\//

/** By the name of the file. */
const running = new Map<string, ChildProcess>()
const runs: FileRun[] = []
const begun = performance.now()

function listFiles (paths: readonly string[]): readonly string[] {
  const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => `test/${path.replaceAll('\\', '/')}`)
    .sort()
  if (paths.length === 0) return files
  const wanted = paths.map((path) => relative(ROOT, resolve(path)))
  return files.filter((file) => wanted.some((path) => file === path || file.startsWith(`${path}/`)))
}

function isUnit (file: string): boolean {
  return !WHOLE_SERVICE.test(file) && !STARTS_PROCESSES.test(readFileSync(join(ROOT, file), 'utf8'))
}

/** Seconds of each file in the last runs: the longest start first, so that none of them runs at the end by itself. */
function readTimes (): Record<string, number> {
  return existsSync(TIMES) ? JSON.parse(readFileSync(TIMES, 'utf8')) as Record<string, number> : {}
}

function secondsOf (file: string): number {
  return times[file] ?? (isUnit(file) ? 1 : 10)
}

async function runFile (file: string, folder: string): Promise<FileRun> {
  const started = performance.now()
  const tap = new TapResults()
  const child = spawn(process.execPath, ['--enable-source-maps', join(folder, file.replace(/\.ts$/, '.js'))], {
    cwd: ROOT,
    env: { ...process.env, TAP: '1', TAP_TIMEOUT: String(FILE_SECONDS) },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: what a test has started ends with it.
    detached: true
  })
  running.set(file, child)
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    killGroup(child)
  }, KILL_AFTER_SECONDS * 1_000)
  child.stdout.pipe(tap.stream)
  const [stderr, [code, signal]] = await Promise.all([text(child.stderr), once(child, 'close')]) as [string, [number | null, string | null]]
  clearTimeout(timer)
  running.delete(file)
  const results = tap.results()
  return { file, seconds: (performance.now() - started) / 1_000, results, stderr, broken: brokenBy() }

  function brokenBy (): string | undefined {
    if (isLate) return `took more than ${KILL_AFTER_SECONDS} s`
    if (signal !== null) return `ended by ${signal}`
    if (results.failures.length > 0) return undefined
    if (code !== 0) return `ended with exit code ${code}`
    if (tap.stream.results?.ok !== true) return 'ended before its tests did'
    return undefined
  }
}

function killGroup ({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // The whole group has ended.
  }
}

async function runAll (files: readonly string[], jobs: number, folder: string): Promise<void> {
  const waiting = files.filter((file) => !ALONE.test(file))
  const worker = async (queue: string[]) => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const run = await runFile(file, folder)
      runs.push(run)
      showProgress(run, runs.length, files.length)
    }
  }
  await Promise.all(Array.from({ length: jobs }, () => worker(waiting)))
  await worker(files.filter((file) => ALONE.test(file)))
}

/** One line that is overwritten on a terminal; otherwise a line for what failed, and nothing else. */
function showProgress (run: FileRun, done: number, total: number): void {
  const hasFailed = totalsOf([run]).failed > 0
  if (process.stdout.isTTY) process.stdout.write(`\r\u001b[K[${done}/${total}] ${run.file}`)
  if (hasFailed) process.stdout.write(`${process.stdout.isTTY ? '\r\u001b[K' : ''}FAILED ${run.file}\n`)
  if (done === total && process.stdout.isTTY) process.stdout.write('\r\u001b[K')
}

const { values, positionals } = parseArgs({
  options: { unit: { type: 'boolean', default: false }, jobs: { type: 'string', default: '2' } },
  allowPositionals: true
})
const times = readTimes()
const files = listFiles(positionals)
  .filter((file) => !values.unit || positionals.length > 0 || isUnit(file))
  .toSorted((a, b) => secondsOf(b) - secondsOf(a))

mkdirSync(join(ROOT, '.tap'), { recursive: true })
const folder = mkdtempSync(join(ROOT, '.tap/run-'))
process.on('exit', () => {
  for (const child of running.values()) killGroup(child)
  rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    for (const file of running.keys()) runs.push({ file, seconds: 0, results: new TapResults().results(), stderr: '', broken: `was running at ${signal}` })
    finish()
    process.exit(1)
  })
}

function finish (): void {
  console.log(renderReport(runs, (performance.now() - begun) / 1_000))
  if (totalsOf(runs).failed > 0) process.exitCode = 1
}

if (files.length === 0) {
  console.error(`No test file at ${positionals.join(', ')}`)
  process.exit(1)
}
await transpile(ROOT, folder)
await runAll(files, Number(values.jobs), folder)
writeFileSync(TIMES, JSON.stringify({ ...times, ...Object.fromEntries(runs.map(({ file, seconds }) => [file, seconds])) }))
finish()
