import { execFile, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { promisify } from 'node:util'
import { type LongRun, readCommandLine, refuseCommandLine, runLong } from '../scripts/long-run.ts'
import { measureFirst, measureScale } from './scale.ts'
import { measureRequests } from './requests.ts'
import { measureSearch } from './search.ts'
import { measureShared } from './shared.ts'
import { type Row, toMarkdown } from './table.ts'

const PARTS: Readonly<Record<string, (run: LongRun, folder: string) => Promise<Row[]>>> = {
  requests: measureRequests,
  scale: measureScale,
  first: measureFirst,
  search: measureSearch,
  shared: measureShared
}

/** Prints the share of a processor that a busy loop of one second gets. */
const LOOP = `
const start = performance.now()
const before = process.cpuUsage()
while (performance.now() - start < 1000);
const { user, system } = process.cpuUsage(before)
console.log((user + system) / 1e6)`

/** With a smaller share, other processes are at work, and figures say little. */
const MIN_SHARE = 0.9

/** Runs a busy loop for each processor. Returns whether one of them had to wait for other processes. */
async function isMachineBusy (): Promise<boolean> {
  const loops = await Promise.all(cpus().map(() => promisify(execFile)(process.execPath, ['-e', LOOP])))
  return loops.some(({ stdout }) => Number(stdout) < MIN_SHARE)
}

const USAGE = `
npm run bench -- [PART…]

Measures the figures that the service promises, on Linux. All parts go to bench/results.md, single ones are printed.

  requests  CPU time of single requests, against plain Fastify and @fastify/static
  scale     start, memory, stalls and changes with 10,000 skills
  first     event-loop stalls of first requests
  search    search among 10,000 skills, and plain questions
  shared    equal requests at the same time, and commands
`

const { positionals } = readCommandLine(USAGE, { allowPositionals: true } as const)
const unknown = positionals.find((part) => !Object.hasOwn(PARTS, part))
if (unknown !== undefined) refuseCommandLine(`there is no part '${unknown}', but ${Object.keys(PARTS).join(', ')}`)

await runLong(async (run) => {
  const folder = run.folder('skillserve-bench')
  const rows: Row[] = []
  let isBusy = await isMachineBusy()
  for (const [part, measure] of Object.entries(PARTS)) {
    if (positionals.length === 0 || positionals.includes(part)) rows.push(...await measure(run, folder))
    isBusy ||= await isMachineBusy()
  }
  const missed = rows.filter(({ isMet }) => !isMet).length
  const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).stdout?.trim() || 'no commit'
  const report = `# Figures

Measured ${new Date().toISOString().slice(0, 10)} with \`npm run bench\` at ${commit}
on ${cpus().length} × ${cpus()[0]?.model}, Linux ${release()}, Node ${process.version}.
${missed} of ${rows.length} limits are missed. Each figure is the median of its rounds, with the lowest and the highest.
Of single requests it is the CPU time of the server's process, by turns with a reference: plain Fastify sends the same
bytes from memory, and logs to a buffered pino destination. Not measured here: \`.ci/run\`, \`npm test\`.

${toMarkdown(rows)}`
  run.print(report)
  if (isBusy) run.print('The machine was busy: bench/results.md stays as it is. Run it again when nothing else works.')
  else if (positionals.length === 0) writeFileSync(new URL('results.md', import.meta.url), report)
  return !isBusy
})
