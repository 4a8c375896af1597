import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { type Connections, followConnections } from '../src/connections.ts'

const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'

async function listen (t: Test, handler: RequestListener): Promise<{ server: Server, connections: Connections }> {
  const server = createServer({ keepAliveTimeout: 60_000 }, handler)
  const connections = followConnections(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    connections.destroy()
  })
  return { server, connections }
}

async function open (t: Test, server: Server): Promise<Socket> {
  const accepted = once(server, 'connection')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  t.teardown(() => { socket.destroy() })
  await Promise.all([once(socket, 'connect'), accepted])
  return socket
}

async function readAll (socket: Socket): Promise<string> {
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}

function closed (server: Server): Promise<void> {
  return new Promise((resolve, reject) => { server.close((error) => error ? reject(error) : resolve()) })
}

t.test('close() ends connections that have sent nothing, half a head, or wait between two requests', async (t) => {
  const { server, connections } = await listen(t, (_request, response) => { response.end('ok') })
  const silent = await open(t, server)
  const half = await open(t, server)
  half.write('GET / HT')
  const idle = await open(t, server)
  idle.write(REQUEST)
  await once(idle, 'data')
  t.equal(connections.size, 3)
  const ends = [silent, half, idle].map((socket) => once(socket.resume(), 'close'))
  await closed(server)
  await Promise.all(ends)
  t.equal(connections.size, 0)
})

t.test('close() waits for a running request, whose answer says Connection: close', async (t) => {
  const { server, connections } = await listen(t, (request, response) => { request.resume().on('end', () => response.end('ok')) })
  const socket = await open(t, server)
  socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n')
  await once(server, 'request')
  connections.announceClose()
  const end = closed(server)
  socket.write('{}')
  const answer = await readAll(socket)
  t.match(answer, /^HTTP\/1\.1 200 OK\r\n/)
  t.match(answer, /\r\nconnection: close\r\n/i)
  await end
})

t.test('after announceClose() and before close() requests are served, as the last of their connections', async (t) => {
  const { server, connections } = await listen(t, (_request, response) => { response.end('ok') })
  const socket = await open(t, server)
  connections.announceClose()
  socket.write(REQUEST)
  t.match(await readAll(socket), /\r\nconnection: close\r\n[^]*ok$/i)
})

t.test('close() does not cut an answer that is written and not yet read', async (t) => {
  const body = Buffer.alloc(20_000_000, 'x')
  const { server } = await listen(t, (_request, response) => { response.end(body) })
  const socket = await open(t, server)
  socket.pause()
  socket.write(REQUEST)
  await once(server, 'request')
  const end = closed(server)
  const answer = await readAll(socket)
  t.equal(answer.length - answer.indexOf('\r\n\r\n') - 4, body.length)
  await end
})

t.test('an answer whose head was out before close() ends its connection too', async (t) => {
  const { server, connections } = await listen(t, (request, response) => {
    response.write('first')
    request.resume().on('end', () => response.end('last'))
  })
  const socket = await open(t, server)
  socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n')
  await once(socket, 'data')
  connections.announceClose()
  const end = closed(server)
  socket.write('x')
  t.match(await readAll(socket), /last/)
  await end
})

t.test('destroy() cuts what is left', async (t) => {
  const { server, connections } = await listen(t, () => {})
  const socket = await open(t, server)
  socket.write(REQUEST)
  await once(server, 'request')
  const cut = once(socket.resume(), 'close')
  connections.destroy()
  await cut
  t.equal(connections.size, 0)
})
