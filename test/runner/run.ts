/**
 * Runs test files, and prints what a person reads: the totals, and the failures last. Tests of one area and kind share a
 * process, since loading tap, Fastify and the service costs more CPU time than most of them. They share the folder of the
 * outermost test too.
 *
 *     tsx test/runner/run.ts [--unit] [--jobs N] [FILE|FOLDER...]
 *
 * It translates the tree once and starts plain Node. The command line of tap loads a translator and a tracer of modules into
 * every process. That takes one to three seconds of CPU time for each file.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { type FileRun, renderReport, totalsOf } from './report.ts'
import { makeScratchFolder } from './scratch-folder.ts'
import { TapResults } from './tap-results.ts'
import { transpile } from './transpile.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TIMES = join(ROOT, '.tap/seconds.json')

/** One process; tap itself ends its tests some time before. */
const PROCESS_SECONDS = 300
const KILL_AFTER_SECONDS = PROCESS_SECONDS + 30

/** Hundreds of changes or thousands of reads on a real disk, git's many processes, a browser: each has a process of its own. */
const ITS_OWN = /^test\/figures\/|\/(?:browser|checkout|consistency|file-edits|freshness|git|git-hostile|git-pushes|heavy-attacks|live-reload|markdown-renderer|open-inside-swaps|real-load|skill-manager-disks|watcher-storms)\.test\.ts$/
/** What is no unit test besides: some folders, and what uses the helpers that start processes: the service, others' programs, git, a browser. */
const WHOLE_SERVICE = /^test\/(?:adversarial|project|ui\/pages)\//
const STARTS_PROCESSES = /\/(?:helper\/(?:browser|git|process|skills-client|swapper)|attacks\/stuck-log)\.ts'/

/** No unit tests either, for they take seconds: programs and SDKs of others, whole doors, thousands of requests. They share processes all the same. */
const THOROUGH = /^test\/clients\/|\/(?:archive|audit(?:-doors)?|catalog|compression|door|files|hostile|issuers|large-skills|limits|metrics|pages|pipelining|revision|same-service|shared-caches|validate|well-known|yaml-file)\.test\.ts$/
/** Begins first where no earlier run says how long it takes. */
const LONGEST = /\/browser\.test\.ts$/
/** What proves that answers are right while a disk is written uses the disk of the project; all others would only wait for it. */
const ON_DISK = /\/(?:checkout|consistency|live-reload)\.test\.ts$/
/** Nothing else runs beside what is timed. */
const ALONE = /^test\/figures\//

/** Areas with fewer files of a kind share processes with others. */
const FEW_FILES = 4

/** Two more than there are cores: tests wait for a process, a watcher or a deadline. */
const JOBS = String(availableParallelism() + 2)

/** By the name of their run. */
const running = new Map<string, ChildProcess>()
const runs: FileRun[] = []
let scripts = 0
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

function isWholeService (file: string): boolean {
  return ITS_OWN.test(file) || WHOLE_SERVICE.test(file) || STARTS_PROCESSES.test(readFileSync(join(ROOT, file), 'utf8'))
}

function isUnit (file: string): boolean {
  return !THOROUGH.test(file) && !isWholeService(file)
}

/** Seconds of each file in the last runs: the longest start first, so that none of them runs at the end by itself. */
function readTimes (): Record<string, number> {
  return existsSync(TIMES) ? JSON.parse(readFileSync(TIMES, 'utf8')) as Record<string, number> : {}
}

function secondsOf (files: readonly string[]): number {
  return times[nameOf(files)] ?? files.reduce((sum, file) => sum + meanSecondsOf(file), 0)
}

/** Of all files of its kind, as they were measured: the last processes are short ones on a fresh clone too. */
function meanSecondsOf (file: string): number {
  if (LONGEST.test(file)) return PROCESS_SECONDS
  if (ITS_OWN.test(file)) return 10
  return isWholeService(file) ? 5 : isUnit(file) ? 1 : 3
}

/** The file, or for several files the first and the number of the others. */
function nameOf (files: readonly string[]): string {
  return files.length === 1 ? files.join() : `${files[0]} and ${files.length - 1} more`
}

/** The folder right below `test/`: tests of one area load much the same. */
function areaOf (file: string): string {
  return file.split('/', 2).join('/')
}

/** How many files share a process, by what they are; the first kind that fits counts. More would leave one core without work at the end. */
const KINDS: ReadonlyArray<readonly [fits: (file: string) => boolean, together: number]> = [
  [(file) => ITS_OWN.test(file), 1],
  [isWholeService, 4],
  [isUnit, 12],
  [() => true, 12]
]

/** What runs in one process each: files of one kind and area; those of small areas with each other. */
function group (files: readonly string[]): readonly (readonly string[])[] {
  const left = new Set(files)
  return KINDS.flatMap(([fits, together]) => {
    const ofKind = [...left].filter(fits)
    for (const file of ofKind) left.delete(file)
    const areas = [...new Set(ofKind.map(areaOf))].map((area) => ofKind.filter((file) => areaOf(file) === area))
    const isSmall = ({ length }: readonly string[]): boolean => length < Math.min(together, FEW_FILES)
    return [...areas.filter((files) => !isSmall(files)), areas.filter(isSmall).flat()].flatMap((files) => chunks(files, together))
  })
}

/** As equal as they can be: a last group of one file would load all for little. */
function chunks (files: readonly string[], most: number): readonly (readonly string[])[] {
  const count = Math.ceil(files.length / most)
  return Array.from({ length: count }, (_, index) => files.slice(Math.floor(index * files.length / count), Math.floor((index + 1) * files.length / count)))
}

async function runFiles (files: readonly string[], folder: string): Promise<FileRun> {
  const started = performance.now()
  const tap = new TapResults()
  const file = nameOf(files)
  const imports = ['test/runner/uncaught-errors.ts', ...files].map((path) => `await import(${JSON.stringify(pathToFileURL(join(folder, path.replace(/\.ts$/, '.js'))).href)})`)
  const scratch = join(ON_DISK.test(file) ? folder : scratchFolder, String(++scripts))
  mkdirSync(scratch)
  const script = join(scratch, 'tests.mjs')
  writeFileSync(script, imports.join('\n'))
  const child = spawn(process.execPath, ['--enable-source-maps', script], {
    cwd: ROOT,
    // tap would remove the folder of a test before its teardown, under a service that still runs in it.
    env: { ...process.env, TAP: '1', TAP_TIMEOUT: String(PROCESS_SECONDS), TAP_SAVE_FIXTURE: '1', TAP_CWD: scratch, TMPDIR: scratchFolder },
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
  rmSync(scratch, { recursive: true, force: true })
  const results = tap.results()
  return { file, files: files.length, seconds: (performance.now() - started) / 1_000, results, stderr, broken: brokenBy() }

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

async function runAll (groups: readonly (readonly string[])[], jobs: number, folder: string): Promise<void> {
  const isAlone = ([file = '']: readonly string[]) => ALONE.test(file)
  const worker = async (queue: (readonly string[])[]) => {
    for (let files = queue.shift(); files !== undefined; files = queue.shift()) {
      const run = await runFiles(files, folder)
      runs.push(run)
      showProgress(run, runs.length, groups.length)
    }
  }
  const waiting = groups.filter((files) => !isAlone(files))
  await Promise.all(Array.from({ length: jobs }, () => worker(waiting)))
  await worker(groups.filter(isAlone))
}

/** One line that is overwritten on a terminal; otherwise a line for what failed, and nothing else. */
function showProgress (run: FileRun, done: number, total: number): void {
  const hasFailed = totalsOf([run]).failed > 0
  if (process.stdout.isTTY) process.stdout.write(`\r\u001b[K[${done}/${total}] ${run.file}`)
  if (hasFailed) process.stdout.write(`${process.stdout.isTTY ? '\r\u001b[K' : ''}FAILED ${run.file}\n`)
  if (done === total && process.stdout.isTTY) process.stdout.write('\r\u001b[K')
}

const { values, positionals } = parseArgs({
  options: { unit: { type: 'boolean', default: false }, jobs: { type: 'string', default: JOBS } },
  allowPositionals: true
})
const times = readTimes()
const groups = group(listFiles(positionals).filter((file) => !values.unit || positionals.length > 0 || isUnit(file)))
  .toSorted((a, b) => secondsOf(b) - secondsOf(a))

mkdirSync(join(ROOT, '.tap'), { recursive: true })
const folder = mkdtempSync(join(ROOT, '.tap/run-'))
const scratchFolder = makeScratchFolder(ROOT, folder)
process.on('exit', () => {
  for (const child of running.values()) killGroup(child)
  for (const each of [folder, scratchFolder]) rmSync(each, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    for (const file of running.keys()) runs.push({ file, files: 1, seconds: 0, results: new TapResults().results(), stderr: '', broken: `was running at ${signal}` })
    finish()
    process.exit(1)
  })
}

function finish (): void {
  console.log(renderReport(runs, (performance.now() - begun) / 1_000))
  if (totalsOf(runs).failed > 0) process.exitCode = 1
}

if (groups.length === 0) {
  console.error(`No test file at ${positionals.join(', ')}`)
  process.exit(1)
}
await transpile(ROOT, folder)
await runAll(groups, Number(values.jobs), folder)
writeFileSync(TIMES, JSON.stringify({ ...times, ...Object.fromEntries(runs.map(({ file, seconds }) => [file, seconds])) }))
finish()
