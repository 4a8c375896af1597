// The same for longer, and of more: `npm run attack`.
import t, { type Test } from 'tap'
import { slowness, timeOf } from '../helper/timing.ts'
import { attackByBatch, attackByPipelines, attackBySize, attackBySwaps } from './attacks/heavy-attacks.ts'

/** Of those that `npm run attack` sends, what costs the suite least: descriptors, and memory. */
const PIPELINES_TRIED = ['a file of 8 MB', 'the largest page']

const MEBIBYTE = 1_048_576

/** Longest turn of the event loop next to other tests, in milliseconds. A slow machine gets more. */
const STALL_MS = 1_000

/** Asserts that no turn was longer, nor than a piece of work that cannot be divided. */
async function checkStall (t: Test, longestTurn: number, indivisibleMs = 0): Promise<void> {
  const allowed = Math.max(STALL_MS * await slowness(), indivisibleMs)
  t.ok(longestTurn < allowed, `longest turn ${longestTurn} ms of ${Math.round(allowed)} ms`)
}

t.test('K22: nothing comes out through a link that is swapped in, whoever asks', async (t) => {
  for (const figures of await attackBySwaps(t, 0.3)) t.pass(JSON.stringify(figures))
})

t.test('K34: 128 calls for 10 MiB each are answered within the bound, and others meanwhile', async (t) => {
  const { longestTurn, memoryBefore, memoryAfter, took } = await attackByBatch(t, 1, ['controls.txt'])
  t.comment(took)
  const escaping = await timeOf(() => JSON.stringify(JSON.stringify('\u0001'.repeat(10 * MEBIBYTE))))
  await checkStall(t, longestTurn, escaping.took)
  // The text, its JSON and the answer, and what the garbage collector has not got to: of 1,280 MiB that were asked for.
  t.ok(memoryAfter - memoryBefore < 640 * MEBIBYTE, `${Math.round((memoryAfter - memoryBefore) / MEBIBYTE)} MiB`)
})

t.test(`K56: clients that ask for ${PIPELINES_TRIED.join(' and ')} a thousand times and read nothing cost a bounded amount, and leave nothing behind`, async (t) => {
  const { took, memoryAfter } = await attackByPipelines(t, PIPELINES_TRIED, 4)
  t.comment(took)
  t.ok(memoryAfter < 400 * MEBIBYTE, `${Math.round(memoryAfter / MEBIBYTE)} MiB`)
})

t.test('K9: a skill of 2,000 files among 500 skills is served without a stall', async (t) => {
  const { longestTurn, memoryAfter, took } = await attackBySize(t, { files: 2_000, skills: 500 })
  t.comment(took)
  await checkStall(t, longestTurn)
  t.ok(memoryAfter < 300 * MEBIBYTE, `${Math.round(memoryAfter / MEBIBYTE)} MiB`)
})
