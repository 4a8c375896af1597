import fc from 'fast-check'
import { attackInputs } from '../test/adversarial/attacks/attack-inputs.ts'
import { isAlive, readInputsOptions, startAttackTarget } from '../test/adversarial/attacks/attack-target.ts'
import { createAttacker } from '../test/adversarial/attacks/attacker.ts'
import {
  attackByBatch, attackByPipelines, attackBySize, attackBySwaps, type LoadFigures, PIPELINES
} from '../test/adversarial/attacks/heavy-attacks.ts'
import { type LongRun, readCommandLine, readNumber, runLong } from './long-run.ts'

const USAGE = `
npm run attack -- [--seconds N] [--seed N] [--no-heavy]

Sends generated hostile requests to the real process for N seconds (default 60); the same seed (default 1) makes the
same requests. Before that it runs the attacks that need time or memory, unless --no-heavy is given. It prints what it
sent, and what each heavy attack cost. The exit code is 1 at the first wrong answer, which is printed with its request,
or if an attack takes more than 600 MiB, keeps descriptors, or makes another client wait for more than a second.
`

/** Duration of each swap test, in seconds. */
const SWAP_SECONDS = 10
const PIPELINING_CLIENTS = [1, 20, 300]
/** Heap of the service in a container of 512 MB, in MiB, and requests that have filled it. */
const SMALL_HEAP_MB = 256
const SMALL_HEAP_PIPELINES = ['a file of 8 MB', 'the largest page', 'a skill that is missing', 'a tool call for 8 MB']

/** Bounds of an attack: its memory in bytes, and the wait of another client in milliseconds. */
const MAX_MEMORY_BYTES = 600 * 1_048_576
const MAX_WAIT_MS = 1_000

const { values } = readCommandLine(USAGE,
  {
    allowNegative: true,
    options: {
      heavy: { type: 'boolean', default: true },
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: '1' }
    }
  } as const)
const seconds = readNumber(values.seconds, '--seconds', (value) => value > 0)
const seed = readNumber(values.seed, '--seed', Number.isInteger)

await runLong(async (run) => {
  const isBounded = !values.heavy || await attackHeavily(run)
  const target = await startAttackTarget(run)
  const attacker = await createAttacker(target.url, target.folder)
  const inputs = fc.oneof(...Object.values(attackInputs(await readInputsOptions(target.url, target.folder))))
  // Modules that the first request loads do not count as an effect of an attack.
  await isAlive(target.url)
  await target.longestTurn()
  run.part(`attack: seed ${seed}, ${seconds} s`)
  await fc.assert(fc.asyncProperty(inputs, (attack) => attacker.attack(attack)), {
    seed, numRuns: Number.MAX_SAFE_INTEGER, interruptAfterTimeLimit: seconds * 1_000, markInterruptAsFailure: false
  })
  const longest = await target.longestTurn()
  if (!await isAlive(target.url)) throw new Error('the service does not answer any more')
  const { code, stdout, stderr } = await target.stop()
  if (code !== 0 || stderr !== '' || /unhandled/i.test(stdout)) {
    throw new Error(`the service ended with ${code}: ${stderr}`)
  }
  const statuses =
    [...attacker.statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${count} x ${status}`).join(', ')
  run.print(`attack: seed ${seed}, ${attacker.sent} requests in ${seconds} s, longest turn ${longest} ms; ${statuses}`)
  return isBounded
})

function heavyAttacks (run: LongRun): ReadonlyArray<readonly [what: string, attack: () => Promise<LoadFigures>]> {
  return [
    ['as many calls as a request may have, for files as large as one may be', () => attackByBatch(run, 4)],
    ...Object.keys(PIPELINES).flatMap((what) => PIPELINING_CLIENTS.map((clients) =>
      [`${clients} clients that send many requests and read nothing: ${what}`,
        () => attackByPipelines(run, [what], clients)] as const)),
    ...SMALL_HEAP_PIPELINES.map((what) =>
      [`300 such clients, a heap of ${SMALL_HEAP_MB} MB: ${what}`,
        () => attackByPipelines(run, [what], 300, SMALL_HEAP_MB)] as const),
    ['a skill with 19,000 files', () => attackBySize(run, { files: 19_000 })],
    ['10,000 skills', () => attackBySize(run, { skills: 10_000 })]
  ]
}

/**
 * Runs the heavy attacks. Returns whether each stayed within its bounds. All of them run, even after one that failed.
 */
async function attackHeavily (run: LongRun): Promise<boolean> {
  run.part(`files, folders and skills swapped with links, ${SWAP_SECONDS} s each`)
  for (const { what, answers, given, refused } of await attackBySwaps(run, SWAP_SECONDS)) {
    run.print(
      `${what} swapped with a link for ${SWAP_SECONDS} s: ${answers} answers, ${given} with the file, ${refused} refused`)
  }
  const rows: string[] = []
  for (const [what, attack] of heavyAttacks(run)) {
    run.part(what)
    const { memoryBefore, memoryAfter, waited, longestTurn, took } = await attack()
    const isWithin = memoryAfter <= MAX_MEMORY_BYTES && waited <= MAX_WAIT_MS
    const times = Object.entries(took).map(([door, ms]) => `${door} ${Math.round(ms)} ms`).join(', ')
    run.print(`${what}: memory ${toMebibytes(memoryBefore)} to ${toMebibytes(memoryAfter)} MiB; ${times}`)
    rows.push(
      `| ${what} | ${toMebibytes(memoryAfter)} MiB | ${Math.round(waited)} ms | ${longestTurn} ms | ${isWithin ? 'yes' : '**no**'} |`)
  }
  run.print(
    ['', '| attack | memory, at most | another client waited | longest turn | within bounds |',
      '|---|---|---|---|---|', ...rows, ''].join('\n'))
  return rows.every((row) => !row.includes('**no**'))
}

function toMebibytes (bytes: number): number {
  return Math.round(bytes / 1_048_576)
}
