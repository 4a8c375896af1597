import { readFileSync } from 'node:fs'
import t from 'tap'
import fc from 'fast-check'
import { withCodes, withTargets } from '../../../scripts/finding-codes.ts'
import { finding, FINDINGS, quote, quoteList } from '../../../src/core/format/findings.ts'
import { codePoint } from '../../helper/code-point.ts'

t.test('a finding has the severity of its code, and a field only when it is about one', async t => {
  t.strictSame(finding('name_missing', 'a sentence', 'An instruction'),
    { code: 'name_missing', severity: 'error', message: 'a sentence', fix: 'An instruction' })
  t.strictSame(finding('unknown_fields', 'a sentence', 'An instruction', 'name'),
    { code: 'unknown_fields', severity: 'info', message: 'a sentence', fix: 'An instruction', field: 'name' })
})

t.test('the documents list every kind of finding, and no other', async t => {
  const documented = readFileSync(new URL('../../../docs/findings.md', import.meta.url), 'utf8').match(/^\| `\w+` \| (?:error|warning|info) \| .* \|$/gm)
  t.strictSame(documented, Object.entries(FINDINGS).map(([code, [severity, summary]]) => `| \`${code}\` | ${severity} | ${summary} |`))
})

t.test('K79: each code has a heading that reports link to (if not: npm run tables)', async t => {
  const text = readFileSync(new URL('../../../docs/findings.md', import.meta.url), 'utf8')
  t.equal(text, withCodes(text))
  for (const code of Object.keys(FINDINGS)) t.ok(text.includes(`\n### \`${code}\`\n`), code)
  const targets = readFileSync(new URL('../../../docs/validate.md', import.meta.url), 'utf8')
  t.equal(targets, withTargets(targets))
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

t.test('a list of names says how many it leaves out', async t => {
  t.equal(quoteList(['a']), "'a'")
  t.equal(quoteList(['a', 'b', 'c']), "'a', 'b', 'c'")
  t.equal(quoteList(['a', 'b', 'c', 'd', 'e']), "'a', 'b', 'c' and 2 more")
})
