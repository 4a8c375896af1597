import { spawnSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { startProcess } from '../helper/process.ts'
import { jsonRequest, openRaw, rawRequest, request } from '../helper/raw-http.ts'
import { skills, skillText, until } from '../helper/skills.ts'

const CLIENTS = 400
const DESCRIPTORS = 100

/** Connections that ask for nothing, and count whether the service keeps them. */
function flood (port: number): readonly Socket[] {
  return Array.from({ length: CLIENTS }, () => connect(port, '127.0.0.1').on('error', () => {}))
}

t.test('more clients than descriptors: those that are connected are served, the rest are closed, and nothing is left of them', async (t) => {
  const folder = t.testdir({ root: skills('one', 'two') })
  const service = await startProcess(t, { args: [join(folder, 'root')], ulimit: `-n ${DESCRIPTORS}` })
  const descriptors = () => readdirSync(`/proc/${service.pid}/fd`).length
  await until(() => service.log().some(({ msg }) => msg === 'watching a skills folder'))
  const before = descriptors()
  const early = await openRaw(service.url)
  const ask = async (path: string) => await early.send(request('GET', path)).response()

  for (let round = 0; round < 3; round++) {
    const sockets = flood(service.port)
    await until(() => sockets.filter(({ destroyed }) => destroyed).length > CLIENTS / 2)
    t.ok(descriptors() < DESCRIPTORS, `${descriptors()} descriptors`)
    // What is in no cache needs descriptors of its own.
    writeFileSync(join(folder, 'root/one/SKILL.md'), skillText('one', `round ${round}`))
    writeFileSync(join(folder, `root/two/${round}.txt`), `new in round ${round}`)
    t.strictSame((await ask('/skills')).json(), { skills: ['one', 'two'] })
    t.match((await ask('/skills/one')).json(), { documentation: skillText('one', `round ${round}`) })
    t.equal((await ask(`/skills/two/files/${round}.txt`)).text, `new in round ${round}`)
    t.equal((await ask('/skills/two/files')).status, 200)
    for (const socket of sockets) socket.destroy()
    // One is the early client's.
    await until(() => descriptors() <= before + 1)
    t.equal((await rawRequest(service.url, request('GET', '/skills/one'))).status, 200, 'new clients are welcome again')
  }
  early.destroy()
  t.match(await service.stop(), { code: 0, stderr: '' })
})

/** Opens what the limit allows at one signal, and closes it at the next. */
const TAKE_ALL_DESCRIPTORS = `data:text/javascript,${encodeURIComponent(`
  import { closeSync, openSync, writeSync } from 'node:fs'
  const taken = []
  process.on('SIGUSR2', () => {
    if (taken.length > 0) for (const descriptor of taken.splice(0)) closeSync(descriptor)
    else try { for (;;) taken.push(openSync('/dev/null')) } catch {}
    writeSync(1, JSON.stringify({ msg: taken.length > 0 ? 'taken' : 'given back' }) + '\\n')
  })
`)}`

t.test('doors whose code is first asked for while no descriptor is free work as soon as there are some', async (t) => {
  const service = await startProcess(t, { args: [t.testdir(skills('one'))], ulimit: '-n 200', nodeOptions: ['--import', TAKE_ALL_DESCRIPTORS] })
  const connection = await openRaw(service.url)
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  const ask = async () => {
    const statuses: number[] = []
    for (const [path, accept] of [['/', 'text/html'], ['/ui/skills/one', 'text/html'], ['/catalog/one', '*/*']] as const) {
      statuses.push((await connection.send(request('GET', path, { headers: [`Accept: ${accept}`] })).response()).status)
    }
    const { status } = await connection.send(jsonRequest('POST', '/mcp', list, { headers: ['Accept: application/json, text/event-stream'] })).response()
    return [...statuses, status]
  }
  service.signal('SIGUSR2')
  await service.printed('"taken"')
  t.match(await ask(), [500, 500, Number, 500], 'an entry goes without what the SDK says')
  service.signal('SIGUSR2')
  await service.printed('given back')
  t.strictSame(await ask(), [200, 200, 200, 200])
  connection.destroy()
  t.match(await service.stop(), { code: 0, stderr: '' })
})

t.test('git that is started while few descriptors are free fails as every other check, and ends no service', (t) => {
  const script = `
    import { closeSync, openSync } from 'node:fs'
    import { runGit } from '${new URL('../../dist/sources/git/git-command.js', import.meta.url).href}'
    const run = () => runGit({ args: ['--version'], signal: AbortSignal.timeout(30_000), home: '/', env: process.env }).then(() => 'ran', ({ code }) => code)
    const outcomes = [await run()]
    const listeners = process.listenerCount('exit')
    const taken = []
    try { for (;;) taken.push(openSync('/dev/null')) } catch {}
    // The pipes of a child take eight, and its start two more.
    for (const count of [0, 4, 5, taken.length - 9]) {
      for (const descriptor of taken.splice(0, count)) closeSync(descriptor)
      outcomes.push(await run())
    }
    console.log(JSON.stringify({ outcomes, left: process.listenerCount('exit') - listeners }))
  `
  const { status, stdout, stderr } = spawnSync('bash', ['-c', 'ulimit -n 100; exec "$0" --input-type=module -e "$1"', process.execPath, script], { encoding: 'utf8', timeout: 60_000 })
  t.strictSame({ status, stdout, stderr }, { status: 0, stdout: `${JSON.stringify({ outcomes: ['ran', 'EMFILE', 'EMFILE', 'EMFILE', 'ran'], left: 0 })}\n`, stderr: '' })
  t.end()
})
