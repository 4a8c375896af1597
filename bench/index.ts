import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readCommandLine, refuseCommandLine, runLong } from '../scripts/long-run.ts'
import { measureAccess, measureViews } from './access.ts'
import { measureAnswers } from './answers.ts'
import type { Bench } from './bench.ts'
import { separateCores } from './cores.ts'
import { measureFirstRequests } from './first-requests.ts'
import { CONNECTIONS } from './load.ts'
import { machine } from './machine.ts'
import { measureRequests } from './requests.ts'
import { measureScale } from './scale.ts'
import { measureSearch } from './search.ts'
import { type Row, toMarkdown } from './table.ts'

const PARTS: Readonly<Record<string, (bench: Bench) => Promise<Row[]>>> = {
  requests: measureRequests,
  access: measureAccess,
  views: measureViews,
  first: measureFirstRequests,
  scale: measureScale,
  search: measureSearch,
  answers: measureAnswers
}

const USAGE = `
npm run bench -- [PART…]

Measures the figures of the service, each beside its reference in the same run, and prints value, limit, and whether it is met. All
parts together take 5 to 10 minutes and are written to bench/results.md; single parts are only printed. Needs Linux.

  requests  CPU time of single requests, against Fastify and node:http
  access    what tokens cost
  views     what 50 views of 10,000 skills cost
  first     event-loop stalls of first requests
  scale     start, memory, stalls and changes with 10,000 skills
  search    search among 10,000 skills, and the pages for people
  answers   plain questions and the skills that they find
`

const REPOSITORY = fileURLToPath(new URL('..', import.meta.url))

const { positionals } = readCommandLine(USAGE, { allowPositionals: true } as const)
const unknown = positionals.find((part) => !Object.hasOwn(PARTS, part))
if (unknown !== undefined) refuseCommandLine(`there is no part '${unknown}', but ${Object.keys(PARTS).join(', ')}`)

await runLong(async (run) => {
  const begun = performance.now()
  const bench = { run, cores: separateCores(), folder: run.folder('skillserve-bench') }
  const rows: Row[] = []
  for (const [part, measure] of Object.entries(PARTS)) {
    if (positionals.length === 0 || positionals.includes(part)) rows.push(...await measure(bench))
  }
  const limits = rows.filter(({ pass }) => pass !== undefined).length
  const missed = rows.filter(({ pass }) => pass === false).length
  const report = `# Figures

Measured ${new Date().toISOString().slice(0, 10)} with \`npm run bench\` at ${commit()} on ${machine()}; ${bench.cores.description},
${CONNECTIONS} connections, ${Math.round((performance.now() - begun) / 60_000)} minutes in all. Service and reference by turns; each figure is the median of its rounds, with the lowest and
the highest. Of single requests it is the CPU time of the server's process, with new processes in each round. Plain Fastify logs at \`info\` to pino's own destination, buffered as its documentation advises (4,096 characters).

${toMarkdown(rows)}

${missed === 0 ? 'All limits are kept.' : `${missed} of ${limits} limits are missed.`} Not measured here, but by \`time\`: \`.ci/run\` (at most 10 minutes),
\`npm test\` (5), \`npm run test:unit\` (1).
`
  run.print(report)
  if (positionals.length === 0) writeFileSync(new URL('results.md', import.meta.url), report)
  return true
})

/** The commit, and whether the working tree differs from it. */
function commit (): string {
  const git = (...args: string[]) => spawnSync('git', args, { cwd: REPOSITORY, encoding: 'utf8' }).stdout?.trim() ?? ''
  const hash = git('rev-parse', '--short', 'HEAD')
  if (hash === '') return 'no commit'
  return git('status', '--porcelain', '--', 'src', 'bench') === '' ? hash : `${hash} with changes`
}
