import t from 'tap'
import { compressed } from '../../../src/http/send/compressed.ts'

t.test('K49: a compressed form that is kept takes the memory of its bytes alone', async (t) => {
  const text = 'a line of a small document\n'.repeat(60)
  for (const encoding of ['br', 'gzip'] as const) {
    const form = await compressed(text, encoding, `"${encoding}"`) as Buffer
    t.ok(form.length < 1_024)
    t.equal(form.buffer.byteLength, form.length, encoding)
    t.equal(compressed(text, encoding, `"${encoding}"`), form, 'it is kept')
  }
})
