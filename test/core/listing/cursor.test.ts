import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { MAX_CURSOR_CHARACTERS } from '../../../src/core/limits.ts'
import { fingerprint, formatCursor, parseCursor } from '../../../src/core/listing/cursor.ts'

const RANKED = { score: 12.345, ranking: fingerprint('x') }
const names = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }).filter((name) => !/\p{Cc}/u.test(name) && name.isWellFormed())
const ranks = fc.tuple(fc.nat(), fc.string()).map(([steps, text]) => ({ score: steps / 1_000, ranking: fingerprint(text) }))
const positions = fc.tuple(names, fc.option(ranks)).map(([after, ranked]) => ({ after, ...ranked !== null && { ranked } }))

t.test('K46: a cursor is read as it was written, for the same question only', async () => {
  fc.assert(fc.property(fc.string(), fc.string(), positions, (scope, other, position) => {
    const cursor = formatCursor(scope, position)
    return /^[\w-]+$/.test(cursor) && isDeepStrictEqual(parseCursor(scope, cursor), position) &&
      (other === scope || parseCursor(other, cursor) === undefined)
  }))
})

t.test('K46: one changed character makes it none', async () => {
  fc.assert(fc.property(positions, fc.nat(), fc.constantFrom('A', 'z', '0', '-', '=', '+', ' ', 'é'), (position, at, character) => {
    const cursor = formatCursor('s', position)
    const place = at % (cursor.length + 1)
    const changed = cursor.slice(0, place) + character + cursor.slice(place + 1)
    return changed === cursor || parseCursor('s', changed) === undefined
  }))
})

t.test('K46: what is no cursor is none, and nothing throws', async (t) => {
  const cursor = formatCursor('s', { after: 'demo', ranked: RANKED })
  const forge = (fields: string) => Buffer.from(fingerprint(`s\n${fields}`) + fields).toString('base64url')
  t.ok(parseCursor('s', forge('\n\ndemo')), 'the way that the next ones are made is the right one')
  const rows = [
    '', 'x', '__proto__', Buffer.from('{"__proto__":1}').toString('base64url'), `${cursor}=`, ` ${cursor}`, cursor.slice(0, -2), cursor + cursor,
    'A'.repeat(MAX_CURSOR_CHARACTERS + 1), Buffer.from([0xff, 0xfe]).toString('base64url'),
    ...['', 'demo', '\ndemo', 'x\n\ndemo', `NaN\n${RANKED.ranking}\ndemo`, `Infinity\n${RANKED.ranking}\ndemo`, '1\n\ndemo', `\n${RANKED.ranking}\ndemo`, '1\n__proto__\ndemo', '\n\na\nb'].map(forge)
  ]
  for (const text of rows) t.equal(parseCursor('s', text), undefined, text.slice(0, 60))
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => parseCursor('s', text) === undefined))
})

t.test('the longest name fits', async (t) => {
  t.ok(formatCursor('s', { after: '\u{1F600}'.repeat(63), ranked: RANKED }).length < MAX_CURSOR_CHARACTERS)
})
