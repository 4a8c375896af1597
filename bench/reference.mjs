// What the service is compared with: the same bytes from a constant in memory on plain Fastify routes without logging,
// the same on plain node:http, and the same file through @fastify/static. One process, so that all share its fate.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { dirname } from 'node:path'
import fastifyStatic from '@fastify/static'
import fastify from 'fastify'

const { document, file, filePath, list, toolResult } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const bodies = { document: Buffer.from(document), file: Buffer.from(file), list: Buffer.from(list), toolResult: Buffer.from(toolResult) }
const JSON_TYPE = 'application/json; charset=utf-8'

const app = fastify()
app.get('/document/:name', (_request, reply) => { reply.header('content-type', JSON_TYPE).send(bodies.document) })
app.get('/file/:name/*', (_request, reply) => { reply.header('content-type', 'text/markdown; charset=utf-8').send(bodies.file) })
app.get('/list', (_request, reply) => { reply.header('content-type', JSON_TYPE).send(bodies.list) })
app.post('/tool-call', (_request, reply) => { reply.header('content-type', JSON_TYPE).send(bodies.toolResult) })
await app.register(fastifyStatic, { root: dirname(filePath), prefix: '/static/' })

const plain = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': JSON_TYPE, 'content-length': bodies.document.length }).end(bodies.document)
})
plain.listen(0, '127.0.0.1', () => {
  app.get('/plain', (_request, reply) => { reply.send(`http://127.0.0.1:${plain.address().port}/`) })
  app.listen({ port: 0, host: '127.0.0.1', listenTextResolver: (address) => address }, (error, address) => {
    if (error) throw error
    console.log(`listening at ${address}`)
  })
})
process.once('SIGTERM', () => { process.exit(0) })
