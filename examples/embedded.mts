/**
 * The service inside a Fastify app of one's own: everything below /agents is answered by skillserve.
 *
 *   npx tsx examples/embedded.mts [PORT]        PORT defaults to 8082
 *
 * The options of the server, such as its timeouts, are those of the app around it.
 */

import { resolve } from 'node:path'
import { fastify } from 'fastify'
import { buildApp, createSkillManager, createToolRegistry, createTools } from 'skillserve'

const [port = '8082'] = process.argv.slice(2)
const app = fastify({ logger: true })

const skills = createSkillManager({ projectRoots: [resolve('skills')] })
const service = await buildApp({
  skills,
  registry: createToolRegistry(createTools()),
  logger: app.log,
  version: '1.0.0',
  host: '127.0.0.1',
  basePath: '/agents'
})
await service.ready()
await skills.start()
app.addHook('onClose', async () => {
  await service.close()
  await skills.close()
})

app.get('/', async () => ({ skills: await skills.list() }))

await app.register(async (scope) => {
  // The service reads bodies itself.
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', (_request, _payload, done) => { done(null) })
  scope.all('/agents/*', (request, reply) => {
    reply.hijack()
    service.routing(request.raw, reply.raw)
  })
})

await app.listen({ port: Number(port) })
