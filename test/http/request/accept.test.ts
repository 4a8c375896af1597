import fc from 'fast-check'
import t from 'tap'
import { accepts, names, prefers } from '../../../src/http/request/accept.ts'
import { codePoint } from '../../helper/code-point.ts'
import { checkTime } from '../../helper/timing.ts'

const offered = ['application/json', 'text/markdown', 'text/plain'] as const

t.test('K42: the Accept header chooses among the forms', (t) => {
  for (const [accept, expected] of [
    [undefined, 'application/json'],
    ['*/*', 'application/json'],
    ['application/json', 'application/json'],
    ['text/markdown', 'text/markdown'],
    ['text/plain', 'text/plain'],
    ['TEXT/PLAIN', 'text/plain'],
    ['text/*', 'text/markdown'],
    ['text/markdown;q=0.5, text/plain', 'text/plain'],
    ['text/plain, application/json;q=0.9', 'text/plain'],
    ['application/*;q=0.2, text/plain;q=0.1', 'application/json'],
    ['text/markdown, */*;q=0.1', 'text/markdown'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'application/json'],
    ['application/json;q=0, */*', 'text/markdown'],
    ['image/png', 'application/json'],
    ['', 'application/json']
  ] as const) t.equal(prefers(accept, offered), expected, String(accept))
  t.end()
})

t.test('K47: a type is named by itself, in any case, unless its weight is 0', (t) => {
  for (const [accept, expected] of [
    ['text/event-stream', true], ['Text/Event-Stream', true], ['application/json, text/event-stream;charset=utf-8', true], ['text/event-stream;q=0.1', true],
    ['text/event-stream;q=0', false], ['text/event-stream;q=0.0, */*', false], ['*/*', false], ['text/*', false], ['', false], [undefined, false], ['text/event-streams', false]
  ] as const) t.equal(names(accept, 'text/event-stream'), expected, String(accept))
  t.end()
})

t.test('hostile Accept headers get the default form, in linear time', async (t) => {
  for (const accept of [
    '*/*;q=0', 'text/plain;q=NaN', ';;;,,,', 'q=1', '/', '*', '"',
    Array.from({ length: 5000 }, (_, i) => `a/b${i}`).join(','), ','.repeat(16_000), `a/b;${'x='.repeat(8000)}`, `"${'\\"'.repeat(8000)}`
  ]) {
    t.equal(await checkTime(t, 100, () => prefers(accept, offered)), 'application/json', accept.slice(0, 20))
  }
})

t.test('no header throws, and the answer is one of those offered', (t) => {
  const part = fc.constantFrom('text/plain', 'application/json', '*/*', 'text/*', ';q=', '0.5', '1', ',', ';', '"', '\\', '=', ' ', '__proto__', '/')
  const header = fc.oneof(fc.string(), fc.string({ unit: codePoint }), fc.array(part).map((parts) => parts.join('')))
  fc.assert(fc.property(header, (accept) => offered.includes(prefers(accept, offered))))
  t.end()
})

t.test('whether one media type is allowed', (t) => {
  const type = 'text/event-stream'
  for (const accept of [undefined, '', '*/*', type, 'text/*', 'Text/Event-Stream; charset=utf-8', 'application/json, */*;q=0.1']) {
    t.equal(accepts(accept, type), true, String(accept))
  }
  for (const accept of ['application/json', 'text/html', `${type};q=0`, '*/*;q=0', `application/json, ${type}; q=0`]) {
    t.equal(accepts(accept, type), false, accept)
  }
  t.end()
})
