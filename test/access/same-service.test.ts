import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { LEGACY_METHODS, MCP_METHODS } from './questions.ts'
import { compareServices, RICH_WORLD, world } from './same-service.ts'

/** Worlds; the first is rich. `VIEW_RUNS=200` makes others each time. */
const RUNS = Number(process.env['VIEW_RUNS'] ?? 2)

/** Routes without a question. Streams have tests of their own, and a webhook has no caller. */
const NOT_ASKED = ['GET /events', 'GET /livez', 'HEAD /events', 'HEAD /livez', 'POST /hooks/git']

t.test('K64: every answer of every route equals that of a service with nothing but what the caller sees', async (t) => {
  let answers = 0
  let missed: readonly string[] | undefined
  await fc.assert(fc.asyncProperty(world, async (each) => {
    const routes = await compareServices(each, (label, guarded, alone) => {
      answers++
      assert.deepEqual(guarded, alone, label)
    })
    missed = routes.filter((route) => missed?.includes(route) ?? true)
  }), { numRuns: RUNS, examples: [[RICH_WORLD]], ...process.env['VIEW_RUNS'] === undefined && { seed: 1 }, endOnFailure: true })
  t.ok(answers > 300 * RUNS, `${answers} answers`)
  t.strictSame(missed, NOT_ASKED, 'a new route needs a question here')
})

t.test('K64: every method of MCP has a question', async (t) => {
  const server = readFileSync(new URL('../../src/mcp/server.ts', import.meta.url), 'utf8')
  const methods = Array.from(server.matchAll(/setRequestHandler\('([^']+)'/g), ([, method = '']) => method)
  t.ok(methods.length > 8)
  t.strictSame(methods.filter((method) => !Object.hasOwn(MCP_METHODS, method) && !Object.hasOwn(LEGACY_METHODS, method)), [])
})
