import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mock } from 'node:test'
import { join } from 'node:path'
import t from 'tap'
import { ProgressLine, showing } from '../../src/cli/progress.ts'
import { runProcess } from '../helper/process.ts'

const noScript = spawnSync('script', ['--version']).status === 0 ? false : 'script of util-linux is not installed'

t.test('one line after a second, the latest text ten times a second, and nothing of it stays', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  let written = ''
  const line = new ProgressLine((text) => { written += text })
  const taken = (): string => {
    const text = written
    written = ''
    return text
  }
  const show = showing((text) => { line.show(text) }, 'skill')
  show?.(1, 3_000)
  mock.timers.tick(999)
  show?.(2, 3_000)
  t.equal(taken(), '')
  mock.timers.tick(1)
  t.equal(taken(), '\r\u001B[K2 of 3,000 skills')
  for (const done of [3, 4, 5]) show?.(done, 3_000, 'file')
  mock.timers.tick(100)
  t.equal(taken(), '\r\u001B[K5 of 3,000 files')
  show?.(6, 3_000)
  line.erase()
  line.erase()
  mock.timers.tick(10_000)
  t.equal(taken(), '\r\u001B[K', 'what was to come does not come behind the result')
  show?.(7, 3_000)
  mock.timers.tick(100)
  t.equal(taken(), '\r\u001B[K7 of 3,000 skills')
  t.equal(showing(undefined, 'skill'), undefined)
})

t.test('K82: a person at a terminal sees how far a command is, and a pipe gets the result alone', { skip: noScript }, async (t) => {
  const server = createServer((_request, response) => { setTimeout(() => { response.writeHead(404).end() }, 1_300) }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close() })
  const args = ['sync', `http://127.0.0.1:${(server.address() as AddressInfo).port}/skills.zip`, '--state-dir']
  const atTerminal = ['bash', '-c', 'script -qec "$(printf "%q " "$@")" /dev/null', 'bash']
  const [terminal, pipe] = await Promise.all([
    runProcess(t, { args: [...args, join(t.testdir({ one: {}, two: {} }), 'one')], env: { TERM: 'xterm' }, runBy: atTerminal }),
    runProcess(t, { args: [...args, join(t.testdirName, 'two')], env: { TERM: 'xterm' } })
  ])
  t.match([terminal.code, ...terminal.stdout.split('\r\u001B[K')], [1, '', '0 of 1 source', /^the source skills cannot be read: .*\r\n$/])
  t.match(pipe, { code: 1, stdout: /^the source skills cannot be read: .*\n$/, stderr: '' })
})
