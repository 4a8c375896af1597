import { fastify } from 'fastify'
import t from 'tap'
import { Connections } from '../../src/http/connections/connections.ts'
import { httpServerOptions } from '../../src/http/options.ts'
import { pollPhase } from '../../src/plugins/poll-phase.ts'
import { openRaw, request } from '../helper/raw-http.ts'

t.test('K51: a request that waited for the one before it shares no stats with the next poll phase', async (t) => {
  const begun: object[] = []
  const connections = new Connections()
  const app = fastify(httpServerOptions({ connections }))
  t.teardown(() => {
    app.server.closeAllConnections()
    return app.close()
  })
  app.register(pollPhase, { skills: { beginRequest: (socket) => { begun.push(socket) } }, connections })
  app.get('/count', () => String(begun.length))
  const connection = await openRaw(await app.listen({ host: '127.0.0.1', port: 0 }))
  connection.send(Buffer.concat(Array<Buffer>(3).fill(request('GET', '/count'))))
  for (let index = 0; index < 3; index++) t.equal((await connection.response()).text, '1')
  t.equal((await connection.send(request('GET', '/count')).response()).text, '2')
  connection.destroy()
})
