import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import http from 'node:http'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { startProcess } from '../helper/process.ts'
import { skills, until } from '../helper/skills.ts'
import { startStopwatch } from '../helper/timing.ts'

const PROBE = fileURLToPath(new URL('attacks/loop-stall.mjs', import.meta.url))

/** Answers to wait for while a writer writes; each takes several times as long where all write. */
const ANSWERS = 40
const ANSWERS_AT_ONCE = 10
const MAX_STALL_MS = 1_000

/** Runs without a pause until it is killed. Names in the root `.`: skill-0, skill-1 …, each with a folder `sub`. */
const WRITERS = {
  'a folder in the root renamed': "fs.renameSync('skill-0', 'other'); fs.renameSync('other', 'skill-0')",
  'files made and removed in a skill': "fs.writeFileSync('skill-1/x', ''); fs.unlinkSync('skill-1/x')",
  'a folder inside of a skill renamed': "fs.renameSync('skill-2/sub', 'skill-2/other'); fs.renameSync('skill-2/other', 'skill-2/sub')",
  'permissions changed in all skills': "for (let i = 3; i < 300; i++) { fs.chmodSync('skill-' + i + '/SKILL.md', 0o600); fs.chmodSync('skill-' + i + '/SKILL.md', 0o644) }"
} as const

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

async function stop (writer: ChildProcess): Promise<void> {
  const ended = once(writer, 'close')
  writer.kill('SIGKILL')
  await ended
}

/** What the writers rename, and the other names. */
const RENAMED = [['skill-0', 'other'], ['skill-2/sub', 'skill-2/other']] as const

const CASES: Readonly<Record<string, readonly string[]>> = {
  'a folder in the root is renamed': [WRITERS['a folder in the root renamed']],
  'all of that at once': Object.values(WRITERS)
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
  for (const [title, writers] of Object.entries(CASES)) {
    await t.test(title, async (t) => {
      // What was measured before is no matter of this one.
      await longestTurn()
      const running: ChildProcess[] = []
      for (const code of writers) running.push(await startWriter(t, root, code))
      const times: number[] = []
      while (times.length < (writers.length === 1 ? ANSWERS : ANSWERS_AT_ONCE)) times.push(await ask(`${service.url}/livez`))
      // They have written until now. A folder that was renamed when its writer ended has its name again.
      await Promise.all(running.map(stop))
      for (const [from, to] of RENAMED) if (existsSync(join(root, to))) renameSync(join(root, to), join(root, from))
      const stall = await longestTurn()
      t.comment(`longest turn ${stall} ms, longest answer ${Math.round(Math.max(...times))} ms`)
      t.ok(stall < MAX_STALL_MS, `longest turn of the event loop: ${stall} ms`)
      // By the clock single answers also wait for a core: the writers have both of a small machine.
      const median = times.sort((one, other) => one - other)[times.length >> 1] ?? Infinity
      t.ok(median < MAX_STALL_MS, `half of the answers of /livez took ${Math.round(median)} ms or more`)
    })
  }
})
