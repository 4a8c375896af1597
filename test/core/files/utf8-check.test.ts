import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import t from 'tap'
import { Utf8Check } from '../../../src/core/files/utf8-check.ts'

t.test('pieces are judged like the whole, wherever they are cut', (t) => {
  const character = fc.constantFrom('a', 'é', '技', '😀', '\uFEFF').map((text) => Buffer.from(text))
  const broken = fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes))
  fc.assert(fc.property(fc.array(fc.oneof({ weight: 9, arbitrary: character }, broken), { maxLength: 12 }), fc.array(fc.nat(12), { maxLength: 8 }), (parts, lengths) => {
    const bytes = Buffer.concat(parts)
    const check = new Utf8Check()
    let start = 0
    for (const length of [...lengths, bytes.length]) {
      check.add(bytes.subarray(start, start + length))
      start = Math.min(start + length, bytes.length)
    }
    t.equal(check.holds, isUtf8(bytes))
  }))
  t.end()
})
