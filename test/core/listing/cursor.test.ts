import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { sha256 } from '../../../src/core/shared/digest.ts'
import { MAX_CURSOR_CHARACTERS, formatCursor, parseCursor } from '../../../src/core/listing/cursor.ts'
import { codePoint } from '../../helper/code-point.ts'

/** Names of skills, and of files and folders in them, which may hold line ends. */
const names = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }).filter((name) => name.isWellFormed())
const scores = fc.nat().map((steps) => steps / 1_000)
const positions = fc.tuple(names, fc.option(scores)).map(([after, score]) => ({ after, ...score !== null && { score } }))

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
  const cursor = formatCursor('s', { after: 'demo', score: 12.345 })
  const forge = (fields: string) => Buffer.from(sha256(`s\n${fields}`).slice('sha256:'.length, 'sha256:'.length + 8) + fields).toString('base64url')
  t.same(parseCursor('s', forge('1.5\ndemo')), { after: 'demo', score: 1.5 }, 'the next ones are forged as this one is')
  const rows = [
    '', 'x', '__proto__', Buffer.from('{"__proto__":1}').toString('base64url'), `${cursor}=`, ` ${cursor}`, cursor.slice(0, -2), cursor + cursor,
    'A'.repeat(MAX_CURSOR_CHARACTERS + 1), Buffer.from([0xff, 0xfe]).toString('base64url'),
    ...['', 'demo', 'x\ndemo', 'NaN\ndemo', 'Infinity\ndemo', '1e400\ndemo', '01\ndemo', ' 1\ndemo', '0x1\ndemo', '1.50\ndemo'].map(forge)
  ]
  for (const text of rows) t.equal(parseCursor('s', text), undefined, text.slice(0, 60))
  fc.assert(fc.property(fc.string({ unit: codePoint }), (text) => parseCursor('s', text) === undefined))
})

t.test('the longest name fits', async (t) => {
  t.ok(formatCursor('s', { after: '\u{1F600}'.repeat(63), score: 191.234 }).length < MAX_CURSOR_CHARACTERS)
})
