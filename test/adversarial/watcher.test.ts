import { execFile, spawnSync } from 'node:child_process'
import { realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startProcess } from '../helper/process.ts'
import { skills, skillText, until } from '../helper/skills.ts'

/** Runs a command where the kernel gives a user three watches. */
const FEW_WATCHES = ['unshare', '-Ur', 'sh', '-c', 'echo 3 > /proc/sys/user/max_inotify_watches && exec "$@"', 'sh']
const [command = '', ...args] = [...FEW_WATCHES, 'true']
const noLimits = spawnSync(command, args).status !== 0 && 'no user namespaces'

t.test('K51 K52 K54: without enough watches /readyz and the log say so once, and every answer is right', { skip: noLimits }, async (t) => {
  const root = realpathSync(t.testdir(skills('one', 'two', 'three', 'four', 'five')))
  const service = await startProcess(t, { args: [root], runBy: FEW_WATCHES })
  const ask = async (path: string): Promise<unknown> => await (await fetch(`${service.url}${path}`)).json()
  const readiness = async () => await ask('/readyz') as { readonly watcher: { readonly status: string } }
  await until(async () => (await readiness()).watcher.status === 'degraded')
  t.match(await readiness(), {
    watcher: { lastError: 'ENOSPC' },
    detail: 'changes cause no events (ENOSPC: raise fs.inotify.max_user_watches); the folders are compared at intervals'
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
  const { stdout, stderr, status } = await new Promise<{ stdout: string, stderr: string, status: unknown }>((resolve) => {
    execFile(command, args, (error, stdout, stderr) => { resolve({ stdout, stderr, status: error?.code ?? 0 }) })
  })
  t.match({ status, stderr }, { status: 0, stderr: '' })
  t.match(stdout.trim().split('\n').map((line) => JSON.parse(line) as unknown), [{ status: 'degraded', lastError: 'ENOSPC' }, { status: 'watching', errors: 0 }])
})
