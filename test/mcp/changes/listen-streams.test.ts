import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { ReadableStream, type ReadableStreamDefaultController } from 'node:stream/web'
import t from 'tap'
import { ListenStreams } from '../../../src/mcp/changes/listen-streams.ts'
import { collectGarbage } from '../../helper/memory.ts'
import { until } from '../../helper/skills.ts'

const respond = () => new ServerResponse(new IncomingMessage(new Socket()))

function startStream (maxStreamBytes: number) {
  const dropped: number[] = []
  const sent: Array<WeakRef<Uint8Array>> = []
  let controller!: ReadableStreamDefaultController<Uint8Array>
  let isCancelled = false
  const body = new ReadableStream<Uint8Array>({ start (given) { controller = given }, cancel () { isCancelled = true } })
  const streams = new ListenStreams({ onDrop: (bytes) => { dropped.push(bytes) }, maxStreamBytes })
  const stream = streams.bound(body, 'one')
  const send = (bytes: number): void => {
    const frame = new Uint8Array(bytes)
    sent.push(new WeakRef(frame))
    controller.enqueue(frame)
  }
  return { streams, stream, dropped, sent, send, end: () => { controller.close() }, isCancelled: () => isCancelled }
}

t.test('K67: a client that does not read its notifications is dropped, and nothing more is kept for it', async (t) => {
  const { stream, dropped, send, isCancelled } = startStream(100)
  for (const bytes of [60, 40]) send(bytes)
  await until(() => stream.readableLength === 100)
  const closed = once(stream, 'close')
  send(1)
  await closed
  t.strictSame([dropped, isCancelled()], [[100], true])
})

t.test('K67: a client that reads gets any number of notifications, and the end', async (t) => {
  const { stream, dropped, send, end } = startStream(100)
  let received = 0
  stream.on('data', (bytes: Buffer) => { received += bytes.length })
  for (let index = 1; index <= 10; index++) {
    send(60)
    await until(() => received === 60 * index)
  }
  const ended = once(stream, 'end')
  end()
  await ended
  t.strictSame(dropped, [])
})

t.test('a stream that waits for its next notification keeps none that its client has read', async (t) => {
  const { stream, sent, send } = startStream(100)
  let received = 0
  stream.on('data', (bytes: Buffer) => { received += bytes.length })
  send(60)
  await until(() => received === 60)
  await until(() => {
    collectGarbage()
    return sent[0]?.deref() === undefined
  })
  t.notOk(stream.destroyed)
})

t.test('a client that leaves ends the stream of the SDK', async (t) => {
  const { stream, isCancelled } = startStream(100)
  stream.destroy()
  await until(isCancelled)
  t.pass()
})

t.test('K91: a stream that the service ends has its result last, and ends that of the SDK', async (t) => {
  const { streams, stream, send, isCancelled } = startStream(100)
  let received = ''
  stream.on('data', (bytes: Buffer) => { received += bytes.toString() })
  send(1)
  await until(() => received.length === 1)
  const closed = once(stream, 'close')
  for (const end of [...streams.ends, ...streams.ends]) end()
  await closed
  t.match(received, /^\0event: message\ndata: .*"id":"one","result":\{"resultType":"complete",.*\}\n\n$/)
  t.strictSame([isCancelled(), streams.ends.length], [true, 0])
})

t.test('K67: streams of subscriptions are bounded for the process, whatever view they follow', (t) => {
  const streams = new ListenStreams({ onDrop () {}, maxStreams: 2 })
  const [leave] = [streams.admit(respond(), 0), streams.admit(respond(), 0)]
  t.throws(() => { streams.admit(respond(), 0) }, { code: 'too_many_streams' })
  leave()
  streams.admit(respond(), 0)
  t.throws(() => { streams.admit(respond(), 0) }, { code: 'too_many_streams' })
  t.end()
})

t.test('K67: what the requests of all streams hold is bounded, and given back with each stream', (t) => {
  const streams = new ListenStreams({ onDrop () {}, maxCharacters: 100 })
  const leave = streams.admit(respond(), 60)
  streams.admit(respond(), 40)
  t.throws(() => { streams.admit(respond(), 1) }, { code: 'too_many_streams' })
  leave()
  streams.admit(respond(), 60)
  t.throws(() => { streams.admit(respond(), 1) }, { code: 'too_many_streams' })
  t.end()
})

t.test('K91: a service that is stopping takes no more streams, and those that are open go on', async (t) => {
  const { streams, stream, send } = startStream(100)
  streams.admit(respond(), 1)
  streams.refuse()
  t.throws(() => { streams.admit(respond(), 1) }, { code: 'not_ready', message: 'The service is stopping' })
  send(60)
  await until(() => stream.readableLength === 60)
})
