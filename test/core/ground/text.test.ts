import fc from 'fast-check'
import t from 'tap'
import { FileContent } from '../../../src/core/files/file-content.ts'
import { sha256 } from '../../../src/core/ground/digest.ts'
import { compareCodePoints, countCodePoints, decodeText, decodeUtf8, foldWhitespace, grouped, printable, quote, withoutEndSlashes } from '../../../src/core/ground/text.ts'
import { codePoint } from '../../helper/code-point.ts'
import { checkTime } from '../../helper/timing.ts'

function utf16be (text: string): Buffer {
  return Buffer.from(text, 'utf16le').swap16()
}

t.test('K20: the encodings, verbatim', (t) => {
  const table: ReadonlyArray<readonly [string, Buffer, string, string]> = [
    ['nothing', Buffer.alloc(0), '', 'utf-8'],
    ['ASCII', Buffer.from('a\r\nb\n\tc\f'), 'a\r\nb\n\tc\f', 'utf-8'],
    ['UTF-8', Buffer.from('é 日本 \u{1F600}'), 'é 日本 \u{1F600}', 'utf-8'],
    ['UTF-8 with BOM', Buffer.from('\uFEFFa'), '\uFEFFa', 'utf-8'],
    ['a BOM alone', Buffer.from('\uFEFF'), '\uFEFF', 'utf-8'],
    ['control characters in UTF-8', Buffer.from('\x1b[0m\x07'), '\x1b[0m\x07', 'utf-8'],
    ['UTF-16LE', Buffer.from('\uFEFFé\u{1F600}\r\n', 'utf16le'), '\uFEFFé\u{1F600}\r\n', 'utf-16le'],
    ['UTF-16BE', utf16be('\uFEFFé\u{1F600}\r\n'), '\uFEFFé\u{1F600}\r\n', 'utf-16be'],
    ['a UTF-16 BOM alone', Buffer.from([0xff, 0xfe]), '\uFEFF', 'utf-16le'],
    ['Latin-1', Buffer.from('caf\xe9 \xa0\xff\r\n', 'latin1'), 'café \xa0ÿ\r\n', 'latin-1'],
    ['an odd byte after a UTF-16 BOM', Buffer.from([0xff, 0xfe, 0x41]), 'ÿþA', 'latin-1']
  ]
  for (const [what, bytes, content, encoding] of table) t.same(decodeText(bytes), { content, encoding }, what)
  t.end()
})

t.test('K20: what is no text', (t) => {
  const table: Readonly<Record<string, Buffer>> = {
    NUL: Buffer.from('a\0b'),
    'NUL at the end': Buffer.from('text\0'),
    'UTF-16 without a BOM': Buffer.from('text', 'utf16le'),
    'a UTF-16 BOM before binary': Buffer.from([0xff, 0xfe, 0x00, 0x01, 0x00, 0x00]),
    'half a surrogate pair': Buffer.from([0xff, 0xfe, 0x00, 0xd8]),
    'a C1 control': Buffer.from([0x61, 0x85, 0xe9]),
    DEL: Buffer.from([0x61, 0x7f, 0xe9]),
    'a C0 control': Buffer.from([0x61, 0x01, 0xe9]),
    PNG: Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  }
  for (const [what, bytes] of Object.entries(table)) t.equal(decodeText(bytes), undefined, what)
  t.end()
})

t.test('K15: strict UTF-8: overlong forms, surrogates and cut sequences are refused', (t) => {
  for (const bytes of [[0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xe2, 0x82], [0xf4, 0x90, 0x80, 0x80], [0xff], [0x80]]) {
    t.equal(decodeUtf8(Buffer.from(bytes)), undefined, bytes.join(' '))
  }
  t.equal(decodeUtf8(Buffer.from('\uFEFFa\0')), '\uFEFFa\0')
  t.end()
})

t.test('K20: whatever the bytes, text gives them back', (t) => {
  const encodings = { 'utf-8': 'utf8', 'utf-16le': 'utf16le', 'latin-1': 'latin1' } as const
  fc.assert(fc.property(fc.oneof(fc.uint8Array(), fc.string({ unit: codePoint }).map((text) => Buffer.from(text))), (array) => {
    const bytes = Buffer.from(array)
    const text = decodeText(bytes)
    if (text === undefined) return true
    const back = text.encoding === 'utf-16be' ? utf16be(text.content) : Buffer.from(text.content, encodings[text.encoding])
    return back.equals(bytes)
  }), { numRuns: 1_000 })
  t.end()
})

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

t.test('a file content decodes once, and knows its digest', (t) => {
  const content = new FileContent(Buffer.from('\uFEFFa'))
  t.equal(content.digest, sha256('\uFEFFa'))
  t.equal(content.utf8, '\uFEFFa')
  t.equal(content.text, content.text)
  const binary = new FileContent(Buffer.from([0xff, 0]))
  t.equal(binary.utf8, undefined)
  t.equal(binary.text, undefined)
  t.equal(binary.text, undefined)
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
