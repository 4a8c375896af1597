import fc from 'fast-check'
import t from 'tap'
import { createSecret } from '../../../src/access/secret.ts'
import { compareCodePoints, printable, quote } from '../../../src/core/shared/text.ts'
import { maskSecrets, SECRET_PREFIXES } from '../../../src/secrets.ts'
import { codePoint, urlPath } from '../../helper/code-point.ts'

t.test('K11: the order is that of code points', (t) => {
  const names = ['b', 'a', 'B', 'ab', '', '\uFFFD', '\u{1F600}', '\uE000', 'é', '\u{10000}', '\uD7FF', '-', '_', '日本']
  const byCodePoints = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
  t.strictSame(names.toSorted(compareCodePoints), names.toSorted(byCodePoints), 'which is that of UTF-8 bytes')
  t.notSame(names.toSorted(compareCodePoints), names.toSorted(), 'and not that of UTF-16 units')
  const character = fc.constantFrom('a', 'b', '\uD7FF', '\uE000', '\uFFFD', '\u{10000}', '\u{10FFFF}', '\u{1F600}')
  const name = fc.oneof(fc.string({ unit: codePoint }), fc.string({ unit: character, maxLength: 4 })).filter((text) =>
    text.isWellFormed())
  fc.assert(fc.property(name, name, (a, b) => Math.sign(compareCodePoints(a, b)) === byCodePoints(a, b)),
    { numRuns: 1_000 })
  t.end()
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
    ['技能 😀', "'技能 😀'"],
    ['a'.repeat(80), `'${'a'.repeat(80)}'`],
    ['a'.repeat(81), `'${'a'.repeat(80)}…'`],
    ['😀'.repeat(1_000_000), `'${'😀'.repeat(80)}…'`]
  ]
  for (const [text, expected] of rows) t.equal(quote(text), expected)
  t.equal(printable('é 😀 a\r\n\x1b[0m\u2028\u2029\u202e\u0085\ud800b'),
    'é 😀 a\\u000d\\u000a\\u001b[0m\\u2028\\u2029\\u202e\\u0085\\ud800b')
})

t.test('whatever the text, what is quoted is printable, well-formed and short', async t => {
  t.doesNotThrow(() => fc.assert(fc.property(fc.string({ unit: codePoint }), text => {
    const quoted = quote(text)
    return !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(quoted) && quoted.isWellFormed() && quoted.length < 1_000
  })))
})

function encode (character: string, times: number): string {
  return times === 0 ? character : `%${'25'.repeat(times - 1)}${character.charCodeAt(0).toString(16)}`
}

t.test('K66: a secret is masked wherever it stands and however it is encoded', async () => {
  const kinds = Object.keys(SECRET_PREFIXES) as Array<keyof typeof SECRET_PREFIXES>
  fc.assert(fc.property(fc.constantFrom(...kinds), fc.array(fc.nat({ max: 3 }), {
    minLength: 42, maxLength: 42
  }), urlPath, (kind, times, around) => {
    const secret = [...createSecret(kind)].map((character, index) => encode(character, times[index] ?? 0)).join('')
    return !maskSecrets(`${around}/${secret}/${around}`).includes(secret.slice(-20))
  }))
})

t.test('K66: the rest of a text stays as it is', async (t) => {
  const token = createSecret('token')
  t.equal(maskSecrets(`//t/${token}/a?b=${token.toUpperCase()}`), '//t/-/a?b=-')
  t.equal(maskSecrets(token.slice(0, -10)), '-', 'most of one')
  for (const text of ['/skills/demo', '/skills/tasks_report', '/skills/a%20b_c', '/skills/sks_short', '/skills/%zz',
    '%'.repeat(100)]) {
    t.equal(maskSecrets(text), text)
  }
})

t.test('K66: a long text costs little', async (t) => {
  const start = performance.now()
  for (const part of ['%25', '25', 'sks_', '%73%6b', 's%2525', '_']) maskSecrets('%' + part.repeat(16_000))
  t.ok(performance.now() - start < 1_000)
})
