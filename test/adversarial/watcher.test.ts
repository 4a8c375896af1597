import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { once } from 'node:events'
import http from 'node:http'
import { constants, setPriority } from 'node:os'
import { startProcess } from '../helper/process.ts'
import { skills, skillText, until } from '../helper/skills.ts'
import { startStopwatch } from '../helper/timing.ts'

/** Runs a command where the kernel gives a user three watches. */
const FEW_WATCHES = ['unshare', '-Ur', 'sh', '-c', 'echo 3 > /proc/sys/user/max_inotify_watches && exec "$@"', 'sh']
const noLimits = !canRun(FEW_WATCHES) && 'no user namespaces'

t.test('K51 K52 K54: without enough watches /readyz and the log say so once, and every answer is right', {
  skip: noLimits
}, async (t) => {
  const root = realpathSync(t.testdir(skills('one', 'two', 'three', 'four', 'five')))
  const service = await startProcess(t, { args: [root], runBy: FEW_WATCHES })
  const ask = async (path: string): Promise<unknown> => await (await fetch(`${service.url}${path}`)).json()
  const readiness = async () => await ask('/readyz') as { readonly watcher: { readonly status: string } }
  await until(async () => (await readiness()).watcher.status === 'degraded')
  t.match(await readiness(), {
    watcher: { lastError: 'ENOSPC' },
    detail: 'file watching failed (ENOSPC); folders are compared at intervals'
  })
  writeFileSync(join(root, 'one/SKILL.md'), skillText('one', 'edited\n'))
  t.match(await ask('/skills/one'), { documentation: skillText('one', 'edited\n') })
  const warnings = () => service.log().filter(({ code }) => code === 'ENOSPC')
  await until(() => warnings().length > 0)
  t.equal(warnings().length, 1)
  t.match(warnings()[0], { remedy: 'raise fs.inotify.max_user_watches' })
})

t.test('K54: a watcher that failed works again when it can', { skip: noLimits }, async (t) => {
  const root = realpathSync(t.testdir(skills('one', 'two', 'three', 'four', 'five')))
  const script = fileURLToPath(new URL('attacks/few-watches.ts', import.meta.url))
  const [command = '', ...args] = [...FEW_WATCHES, process.execPath, '--import', 'tsx', script, root]
  const { stdout, stderr, status } = await new Promise<{
    stdout: string
    stderr: string
    status: unknown
  }>((resolve) => {
    execFile(command, args, (error, stdout, stderr) => { resolve({ stdout, stderr, status: error?.code ?? 0 }) })
  })
  t.match({ status, stderr }, { status: 0, stderr: '' })
  t.match(stdout.trim().split('\n').map((line) => JSON.parse(line) as unknown),
    [{ status: 'degraded', lastError: 'ENOSPC' }, { status: 'watching', errors: 0 }])
})

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
    http.get(url, { agent: false }, (response) => { response.resume().on('end', resolve).on('error', reject) }).on(
      'error', reject)
  })
  return elapsed()
}

async function startWriter (t: Test, root: string, code: string): Promise<ChildProcess> {
  // It ends with this process, however that ends.
  const program =
    `const fs = require('node:fs'); process.stdout.write('.'); while (process.ppid === ${process.pid}) { ${code} }`
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

/** A service that waits for the disk is known by the request that it does not answer. */
const DEADLINE_MS = 60_000

/** What follows a change within a second, on a machine that runs other tests. */
const EVENT_MS = 5_000

/** The log writes through the same threads as network disks: a line is there soon, or never. */
const LINE_MS = 10_000

/**
 * Nobody answers for these disks: each call to one hangs. Their process takes the mounts with it when it ends. The
 * table of mounts says that the folder `live` is a network disk too; that one answers.
 * Arguments: the folder, the names of those that hang, `--`, and the command.
 */
const MOUNT = `
  folder=$1; shift
  descriptor=20
  while [ "$1" != -- ]; do
    eval "exec $descriptor<>/dev/fuse"
    mount -i -t fuse hung "$folder/$1" -o fd=$descriptor,rootmode=40000,user_id=0,group_id=0 || exit 1
    descriptor=$((descriptor + 1)); shift
  done
  shift
  live='990 1 0:99999 / %s rw - nfs4 server:/share rw\n'
  table=$(printf "$live" "$folder/live"; cat /proc/$$/mountinfo)
  mount -t tmpfs tmpfs /mnt && printf '%s\n' "$table" > /mnt/table && mount --bind /mnt/table /proc/$$/mountinfo || exit 1
  exec "$@"`

/** Runs a command that finds disks that hang in some folders, and one that answers in `live`. No other process does. */
function withMounts (folder: string, hung: readonly string[]): readonly string[] {
  return ['unshare', '--map-root-user', '--mount', 'bash', '-c', MOUNT, 'bash', folder, ...hung, '--']
}

const DEAD = ['dead-1', 'dead-2', 'dead-3', 'dead-4', 'dead-5', 'dead-6', 'dead-7', 'dead-8', 'dead-9', 'dead-10']

/** A folder with local skills, skills on a network disk that answers, and folders for disks that hang. */
function createDisks (t: Test): string {
  const dead = Object.fromEntries(DEAD.map((name) => [name, {}]))
  return realpathSync(t.testdir({ ...dead, live: skills('far'), local: skills('near') }))
}

const skip = !canRun(withMounts(createDisks(t), ['dead-1'])) && 'needs FUSE, and a user who may mount'

interface DeadDisks {
  readonly dead: readonly string[]
  readonly roots: readonly string[]
  readonly options?: readonly string[]
  /** Of the pool, instead of those that skillserve has by default. */
  readonly threads?: string
}

async function startBetweenDead (t: Test, { dead, roots, options = [], threads }: DeadDisks) {
  const folder = createDisks(t)
  const service = await startProcess(t, {
    args: [...roots, ...options],
    env: { STATE_DIR: join(folder, 'state'), ...threads !== undefined && { UV_THREADPOOL_SIZE: threads } },
    cwd: folder,
    runBy: withMounts(folder, dead),
    script: 'cli/skillserve.cjs'
  })
  const ask = async (path: string) => {
    const response = await fetch(`${service.url}${path}`, { signal: AbortSignal.timeout(DEADLINE_MS) })
    return { status: response.status, body: await response.json() as unknown }
  }
  return { folder, service, ask }
}

// Those that hang come first where they can: no other root may wait for them.
const DEAD_DISKS: Readonly<Record<string, DeadDisks>> = {
  'one disk that hangs with three roots': {
    dead: ['dead-1'], roots: ['dead-1', 'dead-1/b', 'dead-1/c', 'live', 'local']
  },
  'one disk that hangs, in folders with layouts,': {
    dead: ['dead-1'], roots: ['dead-1', 'live', 'local'], options: ['--layout', 'tree']
  },
  'ten disks that hang': { dead: DEAD, roots: [...DEAD, 'live', 'local'] },
  'three disks that hang, in a pool of four threads,': {
    dead: DEAD.slice(0, 3), roots: ['live', 'local', ...DEAD.slice(0, 3)], threads: '4'
  }
}

// Most of their time they wait for deadlines.
t.jobs = 2
for (const [title, disks] of Object.entries(DEAD_DISKS)) {
  t.test(`K53 K54: ${title} cost their own roots only`, { skip, buffered: true }, async (t) => {
    const { folder, service, ask } = await startBetweenDead(t, disks)
    await until(async () => (await ask('/readyz')).status === 200, DEADLINE_MS)
    await service.printed('watching a skills folder')

    const events = http.get(`${service.url}/events`)
    t.teardown(() => { events.destroy() })
    const [response] = await once(events, 'response') as [http.IncomingMessage]
    let heard = ''
    response.setEncoding('utf8').on('data', (text: string) => { heard += text })
    writeFileSync(join(folder, 'local/near/SKILL.md'), skillText('near', 'edited\n'))
    await until(() => /event: changed\s+data: .*"near"/.test(heard), EVENT_MS)

    for (let round = 0; round < 3; round++) {
      t.match(await ask('/skills/near'), { status: 200, body: { documentation: skillText('near', 'edited\n') } })
      t.match(await ask('/skills/far'), { status: 200, body: { documentation: skillText('far') } })
      t.match(await ask('/skills/other'), { status: 503 })
    }
    t.match(await ask('/skills/far/files'), { status: 200, body: { files: [{ path: 'SKILL.md' }] } })
    const state = (name: string) => ({ name, state: name === 'live' || name === 'local' ? 'ok' : 'failed' })
    await until(async () => !JSON.stringify((await ask('/readyz')).body).includes('indexing'), DEADLINE_MS)
    t.match(await ask('/readyz'), {
      status: 200,
      body: {
        watcher: { status: 'watching', errors: 0 },
        roots: disks.roots.map((path) => state(path.split('/').at(-1) ?? ''))
      }
    })
    await ask('/skills/last-question')
    await until(() => service.log().some(({ url }) => url === '/skills/last-question'), LINE_MS)
  })
}

/** Whether commands can be run so on this machine. */
function canRun ([command = '', ...args]: readonly string[]): boolean {
  return spawnSync(command, [...args, 'true']).status === 0
}
