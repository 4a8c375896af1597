// A plain Fastify app, as a user would write it: the same bytes from constants in memory, and Fastify's own logger at `info` to
// pino's own destination, buffered as its documentation advises. A tool call logs two more lines, as long as those of the service.
// @fastify/static sends the same file.
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import fastifyStatic from '@fastify/static'
import fastify from 'fastify'
import { pino } from 'pino'

const { document, file, filePath, list, toolResult, toolLines } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const bodies = { document: Buffer.from(document), file: Buffer.from(file), list: Buffer.from(list), toolResult: Buffer.from(toolResult) }
const JSON_TYPE = 'application/json; charset=utf-8'

const output = pino.destination({ sync: false, minLength: 4096, periodicFlush: 100 })
const app = fastify({ logger: { level: 'info', stream: output } })
app.get('/document/:name', (_request, reply) => { reply.header('content-type', JSON_TYPE).send(bodies.document) })
app.get('/file/:name/*', (_request, reply) => { reply.header('content-type', 'text/markdown; charset=utf-8').send(bodies.file) })
app.get('/list', (_request, reply) => { reply.header('content-type', JSON_TYPE).send(bodies.list) })
app.post('/tool-call', (request, reply) => {
  for (const line of toolLines) request.log.info(line)
  reply.header('content-type', JSON_TYPE).send(bodies.toolResult)
})
await app.register(fastifyStatic, { root: dirname(filePath), prefix: '/static/' })
await app.listen({ port: 0, host: '127.0.0.1', listenTextResolver: (address) => `listening at ${address}` })
process.once('SIGTERM', () => {
  output.flushSync()
  process.exit(0)
})
