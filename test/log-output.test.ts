import { pino } from 'pino'
import t from 'tap'
import { LogOutput } from '../src/log-output.ts'

/** An output, and the pieces that it has handed over. */
function collect (onPiece: (piece: string) => void = () => {}): { output: LogOutput, pieces: string[] } {
  const pieces: string[] = []
  const output = new LogOutput({
    write (piece) {
      pieces.push(piece)
      onPiece(piece)
    },
    flushSync () {}
  })
  return { output, pieces }
}

t.test('lines of any length keep their order, and many of them are one piece', (t) => {
  const { output, pieces } = collect()
  const logger = pino({ level: 'info' }, output)
  const messages = Array.from({ length: 400 }, (_, index) => `${index} ${'ä€"\n😀x'.repeat(index % 7 === 0 ? index * 10 : 1)}`)
  for (const message of messages) logger.info({ reqId: 'r' }, message)
  t.ok(pieces.length > 10, 'not everything waits for the end')
  t.ok(pieces.length < messages.length / 2, 'short lines do not go one by one')
  output.flushSync()
  const written = pieces.join('').trimEnd().split('\n').map((line) => (JSON.parse(line) as { readonly msg: string }).msg)
  t.strictSame(written, messages)
  t.end()
})

t.test('a line waits a moment for others, and no longer', async (t) => {
  const written = new Promise<string>((resolve) => {
    const { output } = collect(resolve)
    output.write('one\n')
    output.write('two\n')
  })
  t.equal(await written, 'one\ntwo\n')
})

t.test('flushSync hands over what waits, once, and then flushes the sink', (t) => {
  const calls: string[] = []
  const output = new LogOutput({ write (piece) { calls.push(piece) }, flushSync () { calls.push('flushSync') } })
  output.write('one\n')
  output.flushSync()
  output.flushSync()
  t.strictSame(calls, ['one\n', 'flushSync', 'flushSync'])
  t.end()
})
