import fc from 'fast-check'
import t from 'tap'
import { decodeText, decodeUtf8 } from '../../../src/core/read/decode.ts'
import { codePoint } from '../../helper/code-point.ts'

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
  fc.assert(fc.property(fc.oneof(fc.uint8Array(), fc.string({
    unit: codePoint
  }).map((text) => Buffer.from(text))), (array) => {
    const bytes = Buffer.from(array)
    const text = decodeText(bytes)
    if (text === undefined) return true
    const back = text.encoding === 'utf-16be'
      ? utf16be(text.content)
      : Buffer.from(text.content, encodings[text.encoding])
    return back.equals(bytes)
  }), { numRuns: 300 })
  t.end()
})
