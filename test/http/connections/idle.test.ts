import { connect } from 'node:net'
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import t from 'tap'
import { buildService } from '../../helper/build.ts'
import { bearer, buildGuarded, newSecret } from '../../helper/guarded.ts'
import { listenRequest } from '../../helper/mcp.ts'
import { collectGarbage } from '../../helper/memory.ts'
import { jsonRequest, openRaw, request } from '../../helper/raw-http.ts'
import { skill, until } from '../../helper/skills.ts'

/** A plugin that notes requests and their bodies, and keeps neither. */
function createNotes () {
  const requests: Array<WeakRef<object>> = []
  const bodies: Array<WeakRef<object>> = []
  const plugin: FastifyPluginAsync = fp(async (app) => {
    app.addHook('onRequest', async ({ raw }) => { requests.push(new WeakRef(raw)) })
    app.addHook('preHandler', async ({ body }) => { if (typeof body === 'object' && body !== null) bodies.push(new WeakRef(body)) })
  })
  return { requests, bodies, plugin }
}

async function untilFreed (refs: ReadonlyArray<WeakRef<object>>): Promise<void> {
  await until(() => {
    collectGarbage()
    return refs.every((ref) => ref.deref() === undefined)
  })
}

t.test('a connection that waits for its next request keeps neither the last one, with its token, nor its body', async (t) => {
  const { text: token, entry } = newSecret('ann', 'groups: [all]')
  const { requests, bodies, plugin } = createNotes()
  const { url } = await buildGuarded(t, { roots: { skills: { demo: skill('demo') } }, access: `tokens: [${entry}]\nrules: [{ groups: [all] }]\n`, plugins: [plugin] })
  const authorization = `Authorization: ${bearer(token).authorization}`
  const get = (path: string) => request('GET', path, { headers: [authorization] })
  const post = (path: string, type: string, body: string) => request('POST', path, { headers: [authorization, `Content-Type: ${type}`], body })
  const call = JSON.stringify({ name: 'get_skill', arguments: { skill_name: 'demo' } })
  const sent: Readonly<Record<string, readonly Buffer[]>> = {
    'a document': [get('/skills/demo')],
    'the same token again': [get('/skills'), get('/skills/demo')],
    'a refused request': [get('/skills/nosuch')],
    'a tool call': [post('/agent/tool-call', 'application/json', call)],
    'a large body': [post('/validate', 'text/markdown', skill('demo')['SKILL.md'] + 'x'.repeat(500_000))],
    'a compressed document': [request('GET', '/skills/demo', { headers: [authorization, 'Accept-Encoding: gzip'] })],
    'several at once': [get('/skills'), post('/agent/tool-call', 'application/json', call), get('/skills/demo')]
  }
  for (const [what, buffers] of Object.entries(sent)) {
    const connection = await openRaw(url)
    t.teardown(() => { connection.destroy() })
    if (what === 'several at once') connection.send(Buffer.concat(buffers))
    for (const buffer of buffers) {
      if (what !== 'several at once') connection.send(buffer)
      t.ok((await connection.response()).status > 0, what)
    }
  }
  t.equal(requests.length, 10)
  t.equal(bodies.length, 3)
  await untilFreed([...requests, ...bodies])
})

t.test('an answer that lasts keeps nothing of the body that asked for it: a stream, or what a client does not read', async (t) => {
  const { bodies, plugin } = createNotes()
  let open = 0
  const counting: FastifyPluginAsync = fp(async (app) => {
    app.addHook('onSend', async () => { open++ })
    app.addHook('onResponse', async () => { open-- })
  })
  const large = 'a line of a large file\n'.repeat(400_000)
  const { url } = await buildService(t, { files: { demo: { ...skill('demo'), 'large.txt': large } }, options: { plug: () => [plugin, counting] } })
  const { headers, body } = listenRequest()
  const lines = Object.entries(headers as Readonly<Record<string, string>>).map(([name, value]) => `${name}: ${value}`)
  for (const sent of [
    request('POST', '/mcp', { headers: lines, body: String(body) }),
    jsonRequest('POST', '/agent/tool-call', { name: 'read_file_in_skill', arguments: { skill_name: 'demo', file_path: 'large.txt' } })
  ]) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    t.teardown(() => { socket.destroy() })
    socket.pause().write(sent)
  }
  await until(() => open === 2)
  t.equal(bodies.length, 2)
  await untilFreed(bodies)
  t.equal(open, 2, 'both answers are under way')
})
