import { readdirSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { startProcess } from '../helper/process.ts'
import { openRaw, rawRequest, request } from '../helper/raw-http.ts'
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
