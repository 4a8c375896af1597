import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Starts a child and makes a folder, as attacks, benchmarks and soaks do, then works until it is stopped. */
const COMMAND = `
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { runLong } from ${JSON.stringify(import.meta.resolve('../../scripts/long-run.ts'))}
void runLong(async (run) => {
  const folder = run.folder('long-run')
  writeFileSync(folder + '/file', '')
  const child = spawn(process.execPath, ['--eval', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' })
  run.teardown(() => { child.kill('SIGKILL') })
  run.part('work', () => 'some of it')
  run.print(folder)
  return await new Promise(() => {})
})`

t.test('a command that is interrupted leaves nothing behind, and shows progress on terminals alone', async (t) => {
  const folder = t.testdir()
  const command = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', COMMAND], {
    cwd: ROOT, env: { PATH: process.env['PATH'], TMPDIR: folder }, stdio: ['ignore', 'pipe', 'pipe']
  })
  t.teardown(() => { command.kill('SIGKILL') })
  command.stderr.setEncoding('utf8')
  let stderr = ''
  command.stderr.on('data', (text: string) => { stderr += text })
  const [begun] = await once(command.stdout.setEncoding('utf8'), 'data') as [string]
  t.ok(existsSync(begun.trim()))

  command.kill('SIGINT')
  // The child has the same output: `close` comes when both are gone.
  t.strictSame(await once(command, 'close'), [130, null])
  t.equal(stderr, 'SIGINT: ending what was started, and removing its files\n')
  t.strictSame(readdirSync(folder).filter((name) => name.startsWith('long-run')), [])
})
