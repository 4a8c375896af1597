import fc from 'fast-check'
import t from 'tap'
import { accepts, names, prefers } from '../../../src/http/request/accept.ts'
import { codePoint } from '../../helper/code-point.ts'
import { checkTime } from '../../helper/timing.ts'

const offered = ['application/json', 'text/markdown', 'text/plain'] as const
const EVENTS = 'text/event-stream'

t.test('K42: the Accept header chooses among the forms', async (t) => {
  for (const [accept, expected] of [
    [undefined, 'application/json'], ['*/*', 'application/json'], ['application/json', 'application/json'], ['text/markdown', 'text/markdown'], ['text/plain', 'text/plain'],
    ['TEXT/PLAIN', 'text/plain'], ['text/*', 'text/markdown'], ['text/markdown;q=0.5, text/plain', 'text/plain'], ['text/plain, application/json;q=0.9', 'text/plain'],
    ['application/*;q=0.2, text/plain;q=0.1', 'application/json'], ['text/markdown, */*;q=0.1', 'text/markdown'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'application/json'], ['application/json;q=0, */*', 'text/markdown'], ['image/png', 'application/json'], ['', 'application/json']
  ] as const) t.equal(prefers(accept, offered), expected, String(accept))
})

t.test('K47: whether a type is allowed, and whether it is named by itself, in any case and unless its weight is 0', async (t) => {
  for (const [accept, isAllowed, isNamed] of [
    [undefined, true, false], ['', true, false], ['*/*', true, false], ['text/*', true, false], [EVENTS, true, true], ['Text/Event-Stream; charset=utf-8', true, true],
    [`application/json, ${EVENTS};charset=utf-8`, true, true], [`${EVENTS};q=0.1`, true, true], ['application/json, */*;q=0.1', true, false],
    ['application/json', false, false], ['text/html', false, false], [`${EVENTS};q=0`, false, false], [`${EVENTS};q=0.0, */*`, false, false], ['*/*;q=0', false, false],
    [`application/json, ${EVENTS}; q=0`, false, false], [`${EVENTS}s`, false, false]
  ] as const) t.strictSame([accepts(accept, EVENTS), names(accept, EVENTS)], [isAllowed, isNamed], String(accept))
})

t.test('hostile Accept headers get the default form, in linear time', async (t) => {
  for (const accept of [
    '*/*;q=0', 'text/plain;q=NaN', ';;;,,,', 'q=1', '/', '*', '"',
    Array.from({ length: 5000 }, (_, i) => `a/b${i}`).join(','), ','.repeat(16_000), `a/b;${'x='.repeat(8000)}`, `"${'\\"'.repeat(8000)}`
  ]) t.equal(await checkTime(t, 100, () => prefers(accept, offered)), 'application/json', accept.slice(0, 20))
})

t.test('no header throws, and the answer is one of those offered', async () => {
  const part = fc.constantFrom('text/plain', 'application/json', '*/*', 'text/*', ';q=', '0.5', '1', ',', ';', '"', '\\', '=', ' ', '__proto__', '/')
  const header = fc.oneof(fc.string(), fc.string({ unit: codePoint }), fc.array(part).map((parts) => parts.join('')))
  fc.assert(fc.property(header, (accept) => offered.includes(prefers(accept, offered))))
})
