import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import http from 'node:http'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { startProcess } from '../helper/process.ts'
import { skills, until } from '../helper/skills.ts'
import { startStopwatch } from '../helper/timing.ts'

const PROBE = fileURLToPath(new URL('attacks/loop-stall.mjs', import.meta.url))

/** Answers to wait for while the writers write. */
const ANSWERS = 10
const MAX_STALL_MS = 1_000

/** Run without a pause until they are killed. Names in the root `.`: skill-0, skill-1 …, each with a folder `sub`. */
const WRITERS = [
  "fs.renameSync('skill-0', 'other'); fs.renameSync('other', 'skill-0')",
  "fs.writeFileSync('skill-1/x', ''); fs.unlinkSync('skill-1/x')",
  "fs.renameSync('skill-2/sub', 'skill-2/other'); fs.renameSync('skill-2/other', 'skill-2/sub')",
  "for (let i = 3; i < 300; i++) { fs.chmodSync('skill-' + i + '/SKILL.md', 0o600); fs.chmodSync('skill-' + i + '/SKILL.md', 0o644) }"
]

/** How long the answer takes, in milliseconds. */
async function ask (url: string): Promise<number> {
  const elapsed = startStopwatch()
  await new Promise<void>((resolve, reject) => {
    http.get(url, { agent: false }, (response) => { response.resume().on('end', resolve).on('error', reject) }).on('error', reject)
  })
  return elapsed()
}

async function startWriter (t: Test, root: string, code: string): Promise<ChildProcess> {
  // It ends with this process, however that ends.
  const program = `const fs = require('node:fs'); process.stdout.write('.'); while (process.ppid === ${process.pid}) { ${code} }`
  const writer = spawn(process.execPath, ['-e', program], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => { writer.kill('SIGKILL') })
  // What is measured is the wait for the events and not for a processor.
  if (writer.pid !== undefined) setPriority(writer.pid, constants.priority.PRIORITY_LOW)
  await once(writer.stdout, 'data')
  return writer
}

t.test('K54: no answer waits for writers without a pause', async (t) => {
  const names = Array.from({ length: 300 }, (_, index) => `skill-${index}`)
  const root = t.testdir(skills(...names))
  for (const name of names) mkdirSync(join(root, name, 'sub'))
  const service = await startProcess(t, { args: [root], nodeOptions: ['--import', PROBE] })
  const events = http.get(`${service.url}/events`)
  t.teardown(() => { events.destroy() })
  await Promise.all([once(events, 'response'), service.printed('watching a skills folder')])
  const measured = () => service.log().filter(({ msg }) => msg === 'longest turn')
  async function longestTurn (): Promise<number> {
    const count = measured().length
    service.signal('SIGWINCH')
    await until(() => measured().length > count)
    return Number(measured().at(-1)?.['ms'])
  }
  // What was measured before is no matter of this test.
  await longestTurn()
  const writers = await Promise.all(WRITERS.map((code) => startWriter(t, root, code)))
  const times: number[] = []
  while (times.length < ANSWERS) times.push(await ask(`${service.url}/livez`))
  await Promise.all(writers.map(async (writer) => {
    writer.kill('SIGKILL')
    await once(writer, 'close')
  }))
  const stall = await longestTurn()
  t.comment(`longest turn ${stall} ms, longest answer ${Math.round(Math.max(...times))} ms`)
  t.ok(stall < MAX_STALL_MS, `longest turn of the event loop: ${stall} ms`)
  // By the clock single answers also wait for a core: the writers have both of a small machine.
  const median = times.sort((one, other) => one - other)[times.length >> 1] ?? Infinity
  t.ok(median < MAX_STALL_MS, `half of the answers of /livez took ${Math.round(median)} ms or more`)
})
