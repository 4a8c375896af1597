/**
 * Attacks the real process for a while, by the generators of the tests: `npm run attack -- --seconds 60 --seed 1`. The same seed
 * makes the same requests. Prints what it sent; exits with 1 at the first answer that is wrong, with the request that led to it.
 * Before that come the attacks that take time or size, with `--no-heavy` they do not.
 */
import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { attackInputs } from '../test/adversarial/attacks/attack-inputs.ts'
import { isAlive, readInputsOptions, startAttackTarget } from '../test/adversarial/attacks/attack-target.ts'
import { createAttacker } from '../test/adversarial/attacks/attacker.ts'
import { attackByBatch, attackBySize, attackBySwaps, type LoadFigures } from '../test/adversarial/attacks/heavy-attacks.ts'

/** How long each swap goes on. */
const SWAP_SECONDS = 10
const BATCH_CLIENTS = 4
const FILES = 100_000
const SKILLS = 10_000

const { values } = parseArgs({ allowNegative: true, options: { heavy: { type: 'boolean', default: true }, seconds: { type: 'string', default: '60' }, seed: { type: 'string', default: '1' } } })
const seconds = Number(values.seconds)
const seed = Number(values.seed)

const cleanups: Array<() => unknown> = []
const owner = { teardown: (cleanup: () => unknown) => { cleanups.push(cleanup) } }
try {
  if (values.heavy) await attackHeavily()
  const target = await startAttackTarget(owner)
  const attacker = await createAttacker(target.url, target.folder)
  const inputs = fc.oneof(...Object.values(attackInputs(await readInputsOptions(target.url, target.folder))))
  // What is loaded at the first request is no attack.
  await isAlive(target.url)
  await target.longestTurn()
  await fc.assert(fc.asyncProperty(inputs, (attack) => attacker.attack(attack)), {
    seed, numRuns: Number.MAX_SAFE_INTEGER, interruptAfterTimeLimit: seconds * 1_000, markInterruptAsFailure: false
  })
  const longest = await target.longestTurn()
  if (!await isAlive(target.url)) throw new Error('the service does not answer any more')
  const { code, stdout, stderr } = await target.stop()
  if (code !== 0 || stderr !== '' || /unhandled/i.test(stdout)) throw new Error(`the service ended with ${code}: ${stderr}`)
  const statuses = [...attacker.statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${count} x ${status}`).join(', ')
  console.log(`attack: seed ${seed}, ${attacker.sent} requests in ${seconds} s, longest turn ${longest} ms; ${statuses}`)
} finally {
  for (const cleanup of cleanups.reverse()) cleanup()
}

async function attackHeavily (): Promise<void> {
  for (const { what, answers, given, refused } of await attackBySwaps(owner, SWAP_SECONDS)) {
    console.log(`${what} swapped with a link for ${SWAP_SECONDS} s, ${answers} answers, ${given} with the file, ${refused} refused`)
  }
  show(`batch, ${BATCH_CLIENTS} clients`, await attackByBatch(owner, BATCH_CLIENTS))
  show(`${FILES} files`, await attackBySize(owner, { files: FILES }))
  show(`${SKILLS} skills`, await attackBySize(owner, { skills: SKILLS }))
}

function show (what: string, { longestTurn, memoryBefore, memoryAfter, took }: LoadFigures): void {
  const times = Object.entries(took).map(([door, ms]) => `${door} ${Math.round(ms)} ms`).join(', ')
  console.log(`${what}: longest turn ${longestTurn} ms, memory ${toMebibytes(memoryBefore)} to ${toMebibytes(memoryAfter)} MiB; ${times}`)
}

function toMebibytes (bytes: number): number {
  return Math.round(bytes / 1_048_576)
}
