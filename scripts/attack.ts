/**
 * Attacks the real process for a while, by the generators of the tests: `npm run attack -- --seconds 60 --seed 1`. The same seed
 * makes the same requests. Prints what it sent; exits with 1 at the first answer that is wrong, with the request that led to it.
 */
import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { attackInputs } from '../test/helper/attack-inputs.ts'
import { isAlive, readInputsOptions, startAttackTarget } from '../test/helper/attack-target.ts'
import { createAttacker } from '../test/helper/attacker.ts'

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string', default: '1' } } })
const seconds = Number(values.seconds)
const seed = Number(values.seed)

const cleanups: Array<() => unknown> = []
try {
  const target = await startAttackTarget({ teardown: (cleanup) => { cleanups.push(cleanup) } })
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
