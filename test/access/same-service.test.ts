import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { compareServices, world } from './same-service.ts'

const RUNS = Number(process.env['VIEW_RUNS'] ?? 5)

t.test('K64: every answer equals that of a service with nothing but what the caller sees', async (t) => {
  let answers = 0
  await fc.assert(fc.asyncProperty(world, async (each) => {
    await compareServices(each, (label, guarded, alone) => {
      answers++
      assert.deepEqual(guarded, alone, label)
    })
  }), { numRuns: RUNS, ...process.env['VIEW_RUNS'] === undefined && { seed: 1 }, endOnFailure: true })
  t.ok(answers > 200 * RUNS, `${answers} answers`)
})
