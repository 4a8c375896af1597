import fc from 'fast-check'
import t from 'tap'
import { compareCodePoints, countCodePoints, foldWhitespace, grouped, printable, quote, withoutEndSlashes } from '../../../src/core/shared/text.ts'
import { codePoint } from '../../helper/code-point.ts'
import { checkTime } from '../../helper/timing.ts'

t.test('K11: the order is that of code points', (t) => {
  const names = ['b', 'a', 'B', 'ab', '', '\uFFFD', '\u{1F600}', '\uE000', 'é', '\u{10000}', '\uD7FF', '-', '_', '日本']
  const byCodePoints = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
  t.strictSame(names.toSorted(compareCodePoints), names.toSorted(byCodePoints), 'which is that of UTF-8 bytes')
  t.notSame(names.toSorted(compareCodePoints), names.toSorted(), 'and not that of UTF-16 units')
  const character = fc.constantFrom('a', 'b', '\uD7FF', '\uE000', '\uFFFD', '\u{10000}', '\u{10FFFF}', '\u{1F600}')
  const name = fc.oneof(fc.string({ unit: codePoint }), fc.string({ unit: character, maxLength: 4 })).filter((text) => text.isWellFormed())
  fc.assert(fc.property(name, name, (a, b) => Math.sign(compareCodePoints(a, b)) === byCodePoints(a, b)), { numRuns: 1_000 })
  t.end()
})

t.test('K9: lengths are counted in code points', (t) => {
  const unit = fc.constantFrom('a', 'é', '\u{1F600}', '\uD800', '\uDC00')
  fc.assert(fc.property(fc.oneof(fc.string({ unit: codePoint }), fc.string({ unit })), (text) => countCodePoints(text) === [...text].length))
  t.end()
})

t.test('white space is folded to one blank', (t) => {
  t.equal(foldWhitespace('  a\n\t b\r\n\u00a0c '), 'a b c')
  t.end()
})

t.test('text from outside stays in one visible line', (t) => {
  t.equal(printable('plain'), 'plain')
  t.equal(printable('é 日本 \u{1f600}'), 'é 日本 \u{1f600}')
  t.equal(printable('a\r\n\x1b[0m\u2028\u2029\u202e\u0085\ud800b'), 'a\\u000d\\u000a\\u001b[0m\\u2028\\u2029\\u202e\\u0085\\ud800b')
  t.end()
})

t.test('whole numbers are grouped as English texts group them', (t) => {
  fc.assert(fc.property(fc.oneof(fc.nat(1_100), fc.maxSafeNat()), (number) => grouped(number) === number.toLocaleString('en')))
  t.end()
})

t.test('slashes at the end go in linear time, wherever others are', async (t) => {
  t.strictSame(['', '/', 'a', 'a/', '/a//', 'a/b'].map(withoutEndSlashes), ['', '', 'a', 'a', '/a', 'a/b'])
  await checkTime(t, 20, () => withoutEndSlashes(`${'/'.repeat(100_000)}x`))
})

t.test('quoted text stays in one line and cannot steer a terminal', async t => {
  const rows: Array<[string, string]> = [
    ['plain', "'plain'"],
    ['a\nb\r\tc', "'a\\nb\\r\\tc'"],
    ['\u001b[31mred', "'\\u{1b}[31mred'"],
    ['a\u202Eb', "'a\\u{202e}b'"],
    ['a\u2028b', "'a\\u{2028}b'"],
    ['\u{E0041}', "'\\u{e0041}'"],
    ['\uD800', "'\\u{d800}'"],
    ['技能 😀', "'技能 😀'"]
  ]
  for (const [text, expected] of rows) t.equal(quote(text), expected)
})

t.test('quoted text is cut at 80 code points, never inside one', async t => {
  t.equal(quote('a'.repeat(80)), `'${'a'.repeat(80)}'`)
  t.equal(quote('a'.repeat(81)), `'${'a'.repeat(80)}…'`)
  t.equal(quote('😀'.repeat(80)), `'${'😀'.repeat(80)}'`)
  t.equal(quote('😀'.repeat(1_000_000)), `'${'😀'.repeat(80)}…'`)
})

t.test('whatever the text, what is quoted is printable, well-formed and short', async t => {
  t.doesNotThrow(() => fc.assert(fc.property(fc.string({ unit: codePoint }), text => {
    const quoted = quote(text)
    return !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(quoted) && quoted.isWellFormed() && quoted.length < 1_000
  })))
})
