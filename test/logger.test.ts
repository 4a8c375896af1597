import { Writable } from 'node:stream'
import fc from 'fast-check'
import { pino } from 'pino'
import t from 'tap'
import { createLogger } from '../src/logger.ts'

/** A destination that keeps its lines. */
function collect (): { lines: string[], stream: Writable } {
  const lines: string[] = []
  return { lines, stream: new Writable({ write (chunk, _encoding, done) { lines.push(String(chunk)); done() } }) }
}

const flat = fc.dictionary(fc.string({ minLength: 1 }).filter((key) => !['__proto__', 'msg', 'err', 'level', 'time'].includes(key)),
  fc.oneof(fc.string({ unit: 'binary' }), fc.double(), fc.integer(), fc.constant(undefined)), { maxKeys: 8 })

t.test('a flat line has the bytes that pino would have written', (t) => {
  const ours = collect()
  const theirs = collect()
  const logger = createLogger('info', ours.stream)
  const reference = pino({ level: 'info' }, theirs.stream)
  const withoutTime = (line: string | undefined) => line?.replace(/"time":\d+/, '"time":0')
  fc.assert(fc.property(flat, fc.string({ unit: 'binary' }), (fields, message) => {
    logger.info(fields, message)
    reference.info(fields, message)
    return withoutTime(ours.lines.pop()) === withoutTime(theirs.lines.pop())
  }), { numRuns: 2_000 })
  t.end()
})

t.test('what is not flat is left to pino', (t) => {
  const { lines, stream } = collect()
  const logger = createLogger('info', stream)
  logger.info({ err: new Error('boom'), nested: { a: [1] } }, 'with an error')
  logger.info('a message of %d words', 5)
  logger.child({ reqId: 'r1' }).warn({ n: 1 }, 'of a child')
  logger.debug({ n: 1 }, 'below the level')
  const entries = lines.map((line) => JSON.parse(line))
  t.match(entries[0], { level: 30, err: { message: 'boom', stack: /boom/ }, nested: { a: [1] }, msg: 'with an error' })
  t.match(entries[1], { msg: 'a message of 5 words' })
  t.match(entries[2], { level: 40, reqId: 'r1', n: 1, msg: 'of a child' })
  t.equal(lines.length, 3)
  t.end()
})
