import { pino } from 'pino'
import t from 'tap'
import { LogOutput, type LogSink } from '../src/log-output.ts'

/** An output, and the pieces that it has written. */
function collect (onPiece: (piece: string) => void = () => {}): { output: LogOutput, pieces: string[] } {
  const pieces: string[] = []
  return {
    output: new LogOutput(sinkOf((bytes) => {
      pieces.push(String(bytes))
      onPiece(String(bytes))
      return bytes.length
    })),
    pieces
  }
}

function sinkOf (write: (bytes: Buffer) => number): LogSink {
  const writeNow = (bytes: Uint8Array): number => write(Buffer.from(bytes))
  return { write: writeNow, writeSync: writeNow }
}

/** A sink that can be full, and what is written to it meanwhile. */
function createFullable (code = 'EAGAIN') {
  const state = { isFull: true, text: '', attempts: 0, onText: () => {} }
  const output = new LogOutput(sinkOf((bytes) => {
    state.attempts++
    if (state.isFull) throw Object.assign(new Error(code), { code })
    state.text += String(bytes)
    state.onText()
    return bytes.length
  }))
  return { state, output }
}

const LINE = `${'x'.repeat(999)}\n`
/** More than the backlog holds. */
const MANY_LINES = 10_000

t.test('lines of any length keep their order, and many of them are one piece', (t) => {
  const { output, pieces } = collect()
  const logger = pino({ level: 'info' }, output)
  const messages = Array.from({ length: 800 }, (_, index) => `${index} ${'ä€"\n😀x'.repeat(index % 7 === 0 ? index * 10 : 1)}`)
  for (const message of messages) logger.info({ reqId: 'r' }, message)
  t.ok(pieces.length > 10, 'not everything waits for the end')
  t.ok(pieces.length < messages.length / 2, 'short lines do not go one by one')
  output.flushSync()
  const written = pieces.join('').trimEnd().split('\n').map((line) => (JSON.parse(line) as { readonly msg: string }).msg)
  t.strictSame(written, messages)
  t.end()
})

t.test('a line waits a moment for others, and no longer', async (t) => {
  const busy = setInterval(() => {}, 1_000)
  t.teardown(() => { clearInterval(busy) })
  const written = new Promise<string>((resolve) => {
    const { output } = collect(resolve)
    output.write('one\n')
    output.write('two\n')
  })
  t.equal(await written, 'one\ntwo\n')
})

t.test('flushSync writes what waits, once', (t) => {
  const { output, pieces } = collect()
  output.write('one\n')
  output.flushSync()
  output.flushSync()
  t.strictSame(pieces, ['one\n'])
  t.end()
})

t.test('a sink that takes a few bytes at a time gets all of them in order', (t) => {
  let text = ''
  const output = new LogOutput(sinkOf((bytes) => {
    text += bytes.toString('latin1', 0, 7)
    return Math.min(bytes.length, 7)
  }))
  const lines = Array.from({ length: 50 }, (_, index) => `line ${index} ä\n`).join('')
  output.write(lines)
  output.flushSync()
  t.equal(Buffer.from(text, 'latin1').toString(), lines)
  t.end()
})

t.test('lines for a full sink are dropped beyond the backlog, counted, and the count comes where they are missing', (t) => {
  const { state, output } = createFullable()
  const counts: number[] = []
  output.dropped.subscribe((count) => {
    counts.push(count)
    output.write('GAP\n')
  })
  for (let line = 0; line < MANY_LINES; line++) output.write(LINE)
  t.strictSame(counts, [])
  state.isFull = false
  output.flushSync()
  output.write('after\n')
  output.flushSync()

  const [before = '', after] = state.text.split('GAP\n')
  const kept = before.length / LINE.length
  t.strictSame(counts, [MANY_LINES - kept])
  t.ok(before.length >= 8 * 1024 * 1024 && before.length < 8.2 * 1024 * 1024, `${before.length} bytes kept`)
  t.equal(after, 'after\n')
  t.end()
})

for (const code of ['EAGAIN', 'ENOSPC', 'EPIPE']) {
  t.test(`after ${code} the sink is tried again, and nothing is lost or written twice`, async (t) => {
    const busy = setInterval(() => {}, 1_000)
    t.teardown(() => { clearInterval(busy) })
    const { state, output } = createFullable(code)
    const lines = Array.from({ length: 800 }, (_, index) => `${index} ${LINE}`)
    for (const line of lines) output.write(line)
    const attempts = state.attempts
    t.ok(attempts > 0)
    state.isFull = false
    await new Promise<void>((resolve) => { state.onText = resolve })
    output.flushSync()
    t.equal(state.text, lines.join(''))
  })

  t.test(`flushSync comes back from a sink that answers ${code} for ever`, (t) => {
    const { state, output } = createFullable(code)
    output.write('one\n')
    output.flushSync()
    t.equal(state.text, '')
    t.equal(state.attempts > 10, code === 'EAGAIN', 'only a reader may come back in time')
    t.end()
  })
}

t.test('a sink that writes in a thread has one piece at a time, and flushSync leaves it that piece', async (t) => {
  const pieces: string[] = []
  let finish = (): void => {}
  const output = new LogOutput({
    write: (bytes) => new Promise((resolve) => {
      pieces.push(String(bytes))
      finish = () => { resolve(bytes.length) }
    }),
    writeSync: (bytes) => {
      pieces.push(String(bytes))
      return bytes.length
    }
  })
  const big = (letter: string): string => `${letter.repeat(70_000)}\n`
  for (const letter of ['a', 'b', 'c']) output.write(big(letter))
  t.strictSame(pieces, [big('a')])
  finish()
  await new Promise((resolve) => setImmediate(resolve))
  t.strictSame(pieces, [big('a'), big('b')])
  output.flushSync()
  t.strictSame(pieces, [big('a'), big('b'), big('c')])
})

t.test('the end of the process writes what a thread was not given yet', (t) => {
  for (const isWithThread of [true, false]) {
    const pieces: string[] = []
    const output = new LogOutput({
      isWithThread,
      write: () => new Promise<number>(() => {}),
      writeSync: (bytes) => pieces.push(Buffer.from(bytes).toString()) && bytes.length
    })
    output.write('one\n')
    output.flush()
    output.write('two\n')
    output.flushSync()
    output.write('three\n')
    output.flushSync()
    t.equal(pieces.join(''), isWithThread ? 'two\nthree\n' : 'one\ntwo\nthree\n')
  }
  t.end()
})
