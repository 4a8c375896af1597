/** `npm run bench`: the contract's figures, each beside its reference in one run, as a table and in `results.md`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chooseLoad } from './load.ts'
import { machine } from './machine.ts'
import { measureScale } from './scale.ts'
import { measureSearch } from './search.ts'
import { toMarkdown } from './table.ts'
import { measureThroughput } from './throughput.ts'

const folder = mkdtempSync(join(tmpdir(), 'skillserve-bench-'))
try {
  const { name, load } = await chooseLoad()
  const rows = [...await measureThroughput(join(folder, 'throughput'), load), ...await measureScale(join(folder, 'scale'), load), ...await measureSearch(folder)]
  const missed = rows.filter(({ pass }) => pass === false).length
  const report = `# Figures

Measured ${new Date().toISOString().slice(0, 10)} with \`npm run bench\` on ${machine()}; load by ${name}, 32 connections, on the same machine.
Server and reference took turns; each figure is the median of its rounds, with the lowest and the highest.

${toMarkdown(rows)}

${missed === 0 ? 'All targets are met.' : `${missed} targets are missed.`}
`
  console.log(report)
  writeFileSync(new URL('results.md', import.meta.url), report)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
