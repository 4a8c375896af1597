import { chmodSync } from 'node:fs'
import { type ChaosReport, runChaos } from '../test/adversarial/chaos/chaos.ts'
import { World } from '../test/adversarial/chaos/world.ts'
import { startProcess } from '../test/helper/process.ts'
import { type LongRun, readCommandLine, readNumber, runLong } from './long-run.ts'

const USAGE = `
npm run chaos -- [--seed N] [--seconds N] [--polling | --dead | --blind] [--uid N]

Changes folders of skills at random for N seconds (default 60) while clients read, and compares every answer of the
real process with a model of the disk. The seed repeats the changes, but not their timing. --polling sets
WATCH_POLLING, --dead makes the kernel refuse every watch, and --blind makes watches report nothing. --uid, for root, is
the user that runs the service, so that permissions count. The exit code is 1 if an answer was wrong.
`

/** Longest time until lists follow a change without events, in milliseconds (K52). */
const BLIND_FOLLOW_MS = 30_000

/** What replaces Node's `fs.watch`, by mode. */
const WATCHES = {
  dead: "() => { throw Object.assign(new Error('no watch is left'), { code: 'ENOSPC' }) }",
  blind: '() => ({ on () {}, close () {} })'
}

const { values } = readCommandLine(USAGE, {
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    seconds: { type: 'string', default: '60' },
    polling: { type: 'boolean', default: false },
    dead: { type: 'boolean', default: false },
    blind: { type: 'boolean', default: false },
    uid: { type: 'string' }
  }
} as const)
const isNatural = (value: number) => Number.isInteger(value) && value >= 0
const seed = readNumber(values.seed, '--seed', isNatural)
const seconds = readNumber(values.seconds, '--seconds', (value) => value > 0)
const uid = values.uid === undefined ? process.getuid?.() ?? 0 : readNumber(values.uid, '--uid', isNatural)

const watch = values.dead ? WATCHES.dead : values.blind ? WATCHES.blind : undefined

await runLong(async (run) => {
  run.print(`chaos: seed ${seed}, ${seconds} s`)
  const folder = run.folder('skillserve-chaos')
  // The service may run as another user, who must be able to read the folder.
  chmodSync(folder, 0o755)
  const world = new World(folder, seed)
  const service = await startProcess(run, {
    args: world.args,
    env: values.polling ? { WATCH_POLLING: 'true' } : {},
    nodeOptions: watch === undefined ? [] : ['--import', withWatch(watch)],
    uid
  })
  run.part(`changing skills while clients read, ${seconds} s`)
  const report = await runChaos({
    world, url: service.url, seed, seconds, bound: uid !== 0, ...watch !== undefined && { followMs: BLIND_FOLLOW_MS }
  }).catch(async (error: unknown) => {
    // The output of the service may say why.
    run.print(JSON.stringify(await service.stop()))
    throw error
  })
  const { code, stderr } = await service.stop()
  print(run, report)
  if (code !== 0 || stderr !== '') run.print(`the service ended with ${code}: ${stderr}`)
  return code === 0 && report.violations.length === 0
})

/** Writes a module that replaces `fs.watch`, for `node --import`. */
function withWatch (watch: string): string {
  return 'data:text/javascript,' + encodeURIComponent(`
    import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    fs.watch = ${watch}
    syncBuiltinESMExports()
  `)
}

function print (run: LongRun, { violations, answers, ...counts }: ChaosReport): void {
  for (const { question, said, expected, history } of violations) {
    run.print(
      `\nVIOLATION ${JSON.stringify(question)}\n  said      ${said}\n  expected  ${expected.join('\n        or  ')}\n  ${history.join('\n  ')}`)
  }
  const rows = { ...counts, ...Object.fromEntries([...answers].sort()), violations: violations.length }
  for (const [name, count] of Object.entries(rows)) run.print(`${name.padEnd(20)}${count}`)
}
