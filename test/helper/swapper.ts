import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ProcessOwner } from './process.ts'

const SWAPPER = `
  import fs from 'node:fs'
  const [path, aside, link] = process.argv.slice(1)
  process.send('ready')
  for (;;) {
    try { fs.renameSync(path, aside); fs.renameSync(link, path); fs.renameSync(path, link); fs.renameSync(aside, path) } catch { process.exit(1) }
  }`

/**
 * A process that swaps `path` with `link` and back, over and over by rename: neither is missing for long.
 * @param aside a free name on the same disk
 * @returns ends it; rejects if it did not swap until then
 */
export async function startSwapper (t: ProcessOwner, path: string, aside: string, link: string): Promise<() => Promise<void>> {
  const swapper = spawn(process.execPath, ['--input-type=module', '-e', SWAPPER, path, aside, link], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  t.teardown(() => { swapper.kill('SIGKILL') })
  await once(swapper, 'message')
  return async () => {
    if (swapper.exitCode !== null) throw new Error(`the swapper ended with ${swapper.exitCode}`)
    swapper.kill('SIGKILL')
    await once(swapper, 'close')
  }
}
