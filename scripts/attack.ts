import fc from 'fast-check'
import { attackInputs } from '../test/adversarial/attacks/attack-inputs.ts'
import { isAlive, readInputsOptions, startAttackTarget } from '../test/adversarial/attacks/attack-target.ts'
import { attackByGrowth, attackByLog } from '../test/adversarial/attacks/busy-attacks.ts'
import { createAttacker } from '../test/adversarial/attacks/attacker.ts'
import { attackByBatch, attackByExcess, attackBySize, attackBySwaps, type LoadFigures } from '../test/adversarial/attacks/heavy-attacks.ts'
import { attackByPipelines, PIPELINES } from '../test/adversarial/attacks/pipelining.ts'
import { type LongRun, readCommandLine, readNumber, runLong } from './long-run.ts'

const USAGE = `
npm run attack -- [--seconds N] [--seed N] [--no-heavy]

Attacks the real process for N seconds (default 60) with generated requests; the same seed (default 1) makes the same requests.
Before that come the attacks that take time or size; with --no-heavy they do not. Prints what it sent, and a table of what each heavy
attack cost. Exits with 1 at the first answer that is wrong, with the request that led to it, and when an attack takes more than 600 MiB,
keeps descriptors, or lets another client wait for more than a second.
`

/** How long each swap goes on. */
const SWAP_SECONDS = 10
const BATCH_CLIENTS = 4
const PIPELINING_CLIENTS = [1, 20, 300]
/** The heap that a container of 512 MB gives, in MiB, and what filled it. */
const SMALL_HEAP_MB = 256
const SMALL_HEAP_PIPELINES = ['a file of 8 MB', 'the largest page', 'a skill that is missing', 'a tool call for 8 MB']
const FILES = 19_000
const EXCESSIVE_FILES = 1_000_000
const LOOSE_FILES = 300_000
const SKILLS = 10_000
const GROWING_ROUNDS = 20
/** Of log lines: thirty times what waits of them. */
const LOG_BYTES = 240_000_000

/** What an attack may take of memory, and of another client's time, in bytes and milliseconds. */
const MAX_MEMORY_BYTES = 600 * 1_048_576
const MAX_WAIT_MS = 1_000

const { values } = readCommandLine(USAGE, { allowNegative: true, options: { heavy: { type: 'boolean', default: true }, seconds: { type: 'string', default: '60' }, seed: { type: 'string', default: '1' } } } as const)
const seconds = readNumber(values.seconds, '--seconds', (value) => value > 0)
const seed = readNumber(values.seed, '--seed', Number.isInteger)

await runLong(async (run) => {
  const isBounded = !values.heavy || await attackHeavily(run)
  const target = await startAttackTarget(run)
  const attacker = await createAttacker(target.url, target.folder)
  const inputs = fc.oneof(...Object.values(attackInputs(await readInputsOptions(target.url, target.folder))))
  // What is loaded at the first request is no attack.
  await isAlive(target.url)
  await target.longestTurn()
  run.part(`attack: seed ${seed}, ${seconds} s`, () => `${attacker.sent} requests`)
  await fc.assert(fc.asyncProperty(inputs, (attack) => attacker.attack(attack)), {
    seed, numRuns: Number.MAX_SAFE_INTEGER, interruptAfterTimeLimit: seconds * 1_000, markInterruptAsFailure: false
  })
  const longest = await target.longestTurn()
  if (!await isAlive(target.url)) throw new Error('the service does not answer any more')
  const { code, stdout, stderr } = await target.stop()
  if (code !== 0 || stderr !== '' || /unhandled/i.test(stdout)) throw new Error(`the service ended with ${code}: ${stderr}`)
  const statuses = [...attacker.statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${count} x ${status}`).join(', ')
  run.print(`attack: seed ${seed}, ${attacker.sent} requests in ${seconds} s, longest turn ${longest} ms; ${statuses}`)
  return isBounded
})

/** Returns whether each attack stayed within the bounds. Figures are of one attack, so that all of them are seen. */
async function attackHeavily (run: LongRun): Promise<boolean> {
  const rows: string[] = []
  let isBounded = true
  const show = (what: string, figures: LoadFigures) => {
    const { memoryAfter, waited, longestTurn } = figures
    const isWithin = memoryAfter <= MAX_MEMORY_BYTES && waited <= MAX_WAIT_MS
    isBounded &&= isWithin
    rows.push(`| ${what} | ${toMebibytes(memoryAfter)} MiB | ${Math.round(waited)} ms | ${longestTurn} ms | all back | ${isWithin ? 'yes' : '**no**'} |`)
    run.print(describe(what, figures))
  }
  run.part(`files, folders and skills swapped with links, ${SWAP_SECONDS} s each`)
  for (const { what, answers, given, refused } of await attackBySwaps(run, SWAP_SECONDS)) {
    run.print(`${what} swapped with a link for ${SWAP_SECONDS} s: ${answers} answers, ${given} with the file, ${refused} refused`)
  }
  run.part('as many calls as a request may have, for files as large as one may be')
  show(`largest batches, ${BATCH_CLIENTS} clients`, await attackByBatch(run, BATCH_CLIENTS))
  for (const what of Object.keys(PIPELINES)) {
    for (const clients of PIPELINING_CLIENTS) {
      run.part(`${clients} clients that send many requests and read nothing: ${what}`)
      const figures = await attackByPipelines(run, [what], clients)
      show(`${clients} clients, pipelines for ${what}, ${figures.descriptors} descriptors at most`, figures)
    }
  }
  for (const what of SMALL_HEAP_PIPELINES) {
    const clients = PIPELINING_CLIENTS.at(-1) ?? 0
    run.part(`${clients} clients that send many requests and read nothing, a heap of ${SMALL_HEAP_MB} MB: ${what}`)
    show(`${clients} clients, a heap of ${SMALL_HEAP_MB} MB, pipelines for ${what}`, await attackByPipelines(run, [what], clients, SMALL_HEAP_MB))
  }
  run.part('a file that grows while it is read')
  show('a file that grows', await attackByGrowth(run, GROWING_ROUNDS))
  for (const [sink, what] of [['pipe', 'a log that nobody reads'], ['disk', 'a log on a full disk']] as const) {
    run.part(what)
    const { memory, waited, stopped } = await attackByLog(run, sink, LOG_BYTES)
    const isWithin = memory <= MAX_MEMORY_BYTES && waited <= MAX_WAIT_MS
    isBounded &&= isWithin
    rows.push(`| ${what}, ended in ${Math.round(stopped)} ms | ${toMebibytes(memory)} MiB | ${Math.round(waited)} ms | – | – | ${isWithin ? 'yes' : '**no**'} |`)
  }
  run.part(`a skill with ${FILES} files`)
  show(`${FILES} files`, await attackBySize(run, { files: FILES }))
  run.part('a skill with a file of terabytes')
  show('a file of terabytes', await attackBySize(run, { huge: true }))
  run.part(`a skill with ${EXCESSIVE_FILES} files, beside ${LOOSE_FILES} loose ones`)
  show(`${EXCESSIVE_FILES} files, beside ${LOOSE_FILES} loose ones`, await attackByExcess(run, { files: EXCESSIVE_FILES, loose: LOOSE_FILES }))
  run.part(`${SKILLS} skills`)
  show(`${SKILLS} skills`, await attackBySize(run, { skills: SKILLS }))
  run.print(['', '| attack | memory, at most | another client waited | longest turn | descriptors | within bounds |', '|---|---|---|---|---|---|', ...rows, ''].join('\n'))
  return isBounded
}

function describe (what: string, { longestTurn, memoryBefore, memoryAfter, took }: LoadFigures): string {
  const times = Object.entries(took).map(([door, ms]) => `${door} ${Math.round(ms)} ms`).join(', ')
  return `${what}: longest turn ${longestTurn} ms, memory ${toMebibytes(memoryBefore)} to ${toMebibytes(memoryAfter)} MiB; ${times}`
}

function toMebibytes (bytes: number): number {
  return Math.round(bytes / 1_048_576)
}
