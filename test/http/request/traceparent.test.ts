import t from 'tap'
import { parseTraceparent } from '../../../src/http/request/traceparent.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

t.test('K72: a traceparent is read as W3C Trace Context has it', async (t) => {
  const context = { traceId: TRACE, spanId: SPAN, flags: '01' }
  for (const [text, expected] of [
    [`00-${TRACE}-${SPAN}-01`, context],
    [`cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`, context],
    [`cc-${TRACE}-${SPAN}-01`, context],
    [`00-${TRACE}-${SPAN}-01-x`, undefined],
    [`cc-${TRACE}-${SPAN}-01x`, undefined],
    [`ff-${TRACE}-${SPAN}-01`, undefined],
    [`00-${TRACE.toUpperCase()}-${SPAN}-01`, undefined],
    [`00-${'0'.repeat(32)}-${SPAN}-01`, undefined],
    [`00-${TRACE}-${'0'.repeat(16)}-01`, undefined],
    ['', undefined],
    [undefined, undefined],
    [['x'], undefined]
  ] as const) t.strictSame(parseTraceparent(text), expected, String(text))
})
