import t from 'tap'
import fc from 'fast-check'
import { finding, quote, quoteList } from '../../../src/core/format/findings.ts'

t.test('a finding has a field only when it is about one', async t => {
  t.strictSame(finding.error('a_code', 'a sentence', 'An instruction'),
    { code: 'a_code', severity: 'error', message: 'a sentence', fix: 'An instruction' })
  t.strictSame(finding.info('a_code', 'a sentence', 'An instruction', 'name'),
    { code: 'a_code', severity: 'info', message: 'a sentence', fix: 'An instruction', field: 'name' })
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
  t.doesNotThrow(() => fc.assert(fc.property(fc.string({ unit: 'binary' }), text => {
    const quoted = quote(text)
    return !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(quoted) && quoted.isWellFormed() && quoted.length < 1_000
  })))
})

t.test('a list of names says how many it leaves out', async t => {
  t.equal(quoteList(['a']), "'a'")
  t.equal(quoteList(['a', 'b', 'c']), "'a', 'b', 'c'")
  t.equal(quoteList(['a', 'b', 'c', 'd', 'e']), "'a', 'b', 'c' and 2 more")
})
