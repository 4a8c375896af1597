import t from 'tap'
import { MAX_TOOL_CALLS } from '../../src/tools/limits.ts'
import { startProcess } from '../helper/process.ts'
import { jsonRequest, openRaw } from '../helper/raw-http.ts'
import { skills } from '../helper/skills.ts'

/** Together more than the 1,001 units that a caller may have at once of one skill, whatever the setting says. */
const CALLS = jsonRequest('POST', '/agent/tool-call', Array.from({ length: MAX_TOOL_CALLS }, () => ({ function: { name: 'list_skills' } })))
const REQUESTS = 10

t.test('K67: on a loopback address without callers nothing is limited, unless the setting says so', async (t) => {
  const root = t.testdir(skills('demo'))
  for (const [limits, isLimited] of [['auto', false], ['off', false], ['on', true]] as const) {
    const { url, stop } = await startProcess(t, { args: [root], env: { LIMITS: limits, LIMIT_RATE: '1', LIMIT_BURST: '1' } })
    const connection = (await openRaw(url)).send(Buffer.concat(Array<Buffer>(REQUESTS).fill(CALLS)))
    const texts: string[] = []
    for (let count = 0; count < REQUESTS; count++) texts.push((await connection.response()).text)
    t.equal(texts.some((text) => text.includes('The limit is 1 unit')), isLimited, limits)
    t.equal(texts.every((text) => text.includes('demo')), !isLimited)
    t.match(texts[0], 'demo')
    connection.destroy()
    await stop()
  }
})
