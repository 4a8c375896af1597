// A plain Fastify app, as a user would write it: the same bytes from memory, and Fastify's own logger at `info` to a
// buffered pino destination. A tool call logs two more lines of the same length. @fastify/static sends the same file.
import { readFileSync } from 'node:fs'
import fastifyStatic from '@fastify/static'
import fastify from 'fastify'
import { pino } from 'pino'

const { document, list, call, lines, root } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const stream = pino.destination({ sync: false, minLength: 4096, periodicFlush: 100 })
const app = fastify({ logger: { level: 'info', stream } })
for (const [path, text] of Object.entries({ '/document': document, '/list': list })) {
  const body = Buffer.from(text)
  app.get(path, (_request, reply) => { reply.type('application/json; charset=utf-8').send(body) })
}
const body = Buffer.from(call)
app.post('/agent/tool-call', (request, reply) => {
  for (const line of lines) request.log.info(line)
  reply.type('application/json; charset=utf-8').send(body)
})
await app.register(fastifyStatic, { root, prefix: '/static/' })
await app.listen({ port: 0, host: '127.0.0.1', listenTextResolver: (address) => `listening at ${address}` })
