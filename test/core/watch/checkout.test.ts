import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { checkOut, followed, inIndex, numbered, skill, skillText, startWatching } from '../../helper/watched-index.ts'
import { startTurnWatch } from '../../helper/timing.ts'

const DEADLINE_MS = 60_000

const run = promisify(execFile)

t.test('K53: a checkout over a thousand skills by another process', async (t) => {
  const names = numbered(1_000)
  const root = t.testdir(Object.fromEntries(names.map((name) => [name, { ...skill(name), 'a.md': '', 'b.md': '', 'c.md': '' }])))
  const manager = await startWatching(t, root)
  let smallest = Infinity
  manager.subscribe(() => { smallest = Math.min(smallest, manager.availableNow().length) })

  const longestTurn = startTurnWatch()
  await run(process.execPath, ['-e', `
    const fs = require('node:fs')
    const { join } = require('node:path')
    const skillText = ${skillText.toString()}
    for (let round = 0; round < 3; round++) {
      for (const name of fs.readdirSync(process.argv[1])) (${checkOut.toString()})(join(process.argv[1], name), name, 'round ' + round)
    }`, root], { timeout: DEADLINE_MS })
  await followed(manager, root)
  const longest = longestTurn()

  t.strictSame(inIndex(manager), names.map((name) => `${name}: round 2`).sort())
  t.strictSame(await manager.list(), [...names].sort())
  t.ok(smallest > 0, `no reader saw an empty catalog, the smallest had ${smallest}`)
  t.comment(`longest turn of the event loop: ${longest.toFixed(0)} ms`)
  t.ok(longest < 1_000, 'no turn of a second, on a machine that runs other tests')
})
