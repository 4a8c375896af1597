import { Writable } from 'node:stream'
import fc from 'fast-check'
import { pino } from 'pino'
import t from 'tap'
import { LogOutput } from '../src/log-output.ts'
import { createLogger } from '../src/logger.ts'

/** An output, and what has been written to it since the last question. */
function collect (): { output: LogOutput, taken: () => string, pieces: Buffer[] } {
  const pieces: Buffer[] = []
  const output = new LogOutput({ write (bytes) { pieces.push(bytes) }, flushSync () {} })
  return {
    output,
    pieces,
    taken () {
      output.flushSync()
      return Buffer.concat(pieces.splice(0)).toString()
    }
  }
}

const flat = fc.dictionary(fc.string({ minLength: 1 }).filter((key) => !['__proto__', 'msg', 'err', 'level', 'time'].includes(key)),
  fc.oneof(fc.string({ unit: 'binary' }), fc.double(), fc.integer(), fc.constant(undefined)), { maxKeys: 8 })

t.test('a flat line has the bytes that pino would have written', (t) => {
  const ours = collect()
  let theirs = ''
  const logger = createLogger('info', ours.output)
  const reference = pino({ level: 'info' }, new Writable({ write (chunk, _encoding, done) { theirs = String(chunk); done() } }))
  const withoutTime = (line: string) => line.replace(/"time":\d+/, '"time":0')
  fc.assert(fc.property(flat, fc.string({ unit: 'binary' }), (fields, message) => {
    logger.info(fields, message)
    reference.info(fields, message)
    return withoutTime(ours.taken()) === withoutTime(theirs)
  }), { numRuns: 2_000 })
  t.end()
})

t.test('what is not flat is left to pino', (t) => {
  const { output, taken } = collect()
  const logger = createLogger('info', output)
  logger.info({ err: new Error('boom'), nested: { a: [1] } }, 'with an error')
  logger.info('a message of %d words', 5)
  logger.child({ reqId: 'r1' }).warn({ n: 1 }, 'of a child')
  logger.debug({ n: 1 }, 'below the level')
  const entries = taken().trimEnd().split('\n').map((line) => JSON.parse(line) as unknown)
  t.match(entries[0], { level: 30, err: { message: 'boom', stack: /boom/ }, nested: { a: [1] }, msg: 'with an error' })
  t.match(entries[1], { msg: 'a message of 5 words' })
  t.match(entries[2], { level: 40, reqId: 'r1', n: 1, msg: 'of a child' })
  t.equal(entries.length, 3)
  t.end()
})

t.test('lines of any length keep their order, and a piece that was handed over stays as it is', (t) => {
  const { output, pieces, taken } = collect()
  const logger = createLogger('info', output)
  const messages = Array.from({ length: 400 }, (_, index) => `${index} ${'ä€"\n😀x'.repeat(index % 7 === 0 ? index * 10 : 1)}`)
  for (const [index, message] of messages.entries()) {
    if (index % 3 === 0) logger.info({ err: new Error('not flat') }, message)
    else logger.info({ reqId: 'r' }, message)
  }
  t.ok(pieces.length > 10, 'it does not all wait')
  const lines = taken().trimEnd().split('\n').map((line) => (JSON.parse(line) as { readonly msg: string }).msg)
  t.strictSame(lines, messages)
  t.end()
})

t.test('a line waits a moment for others, and no longer', async (t) => {
  const written = new Promise<string>((resolve) => {
    const output = new LogOutput({ write (bytes) { resolve(bytes.toString()) }, flushSync () {} })
    output.write('one\n')
    output.write('two\n')
  })
  t.equal(await written, 'one\ntwo\n')
})
