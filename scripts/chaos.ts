/**
 * Breaks what it can: changes folders of skills at random while clients read, and holds every answer of the real process
 * against a model of the disk.
 *
 *   npm run chaos -- [--seed N] [--seconds N] [--polling] [--uid N]
 *
 * The seed repeats the changes, not the moments at which they meet the requests. `--uid`, for root: the user that the
 * service runs as, so that permissions count. Exits with 1 when an answer was wrong.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type ChaosReport, runChaos } from '../test/adversarial/chaos/chaos.ts'
import { World } from '../test/adversarial/chaos/world.ts'
import { startProcess } from '../test/helper/process.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    seconds: { type: 'string', default: '60' },
    polling: { type: 'boolean', default: false },
    uid: { type: 'string' }
  }
})
const seed = Number(values.seed)
const seconds = Number(values.seconds)
const uid = values.uid === undefined ? process.getuid?.() ?? 0 : Number(values.uid)
console.log(`chaos: seed ${seed}, ${seconds} s`)

const folder = mkdtempSync(join(tmpdir(), 'skillserve-chaos-'))
// The service may be another user.
chmodSync(folder, 0o755)
const ends: Array<() => void> = [() => { rmSync(folder, { recursive: true, force: true }) }]
try {
  const world = new World(folder, seed)
  const service = await startProcess({ teardown: (end) => { ends.unshift(end) } }, {
    args: [...world.projectRoots, '--personal', world.personalRoot],
    env: values.polling ? { WATCH_POLLING: 'true' } : {},
    uid
  })
  const report = await runChaos({ world, url: service.url, seed, seconds, bound: uid !== 0 })
  const { code, stderr } = await service.stop()
  print(report)
  if (code !== 0 || stderr !== '') console.log(`the service ended with ${code}: ${stderr}`)
  process.exitCode = code === 0 && report.violations.length === 0 ? 0 : 1
} finally {
  for (const end of ends) end()
}

function print ({ operations, steps, requests, answers, notModified, renamed, gaveUp, violations }: ChaosReport): void {
  for (const { question, said, expected, history } of violations) {
    console.log(`\nVIOLATION ${JSON.stringify(question)}\n  said      ${said}\n  expected  ${expected.join('\n        or  ')}\n  ${history.join('\n  ')}`)
  }
  console.log(`operations    ${operations} (${steps} system calls)`)
  console.log(`requests      ${requests}`)
  console.log(`answers       ${[...answers.values()].reduce((sum, count) => sum + count, 0)}`)
  for (const [kind, count] of [...answers].sort()) console.log(`  ${kind.padEnd(20)}${count}`)
  console.log(`not modified  ${notModified}`)
  console.log(`name moved    ${renamed}`)
  console.log(`given up      ${gaveUp}`)
  console.log(`violations    ${violations.length}`)
}
