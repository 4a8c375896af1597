import fc from 'fast-check'
import t from 'tap'
import { createSecret } from '../../../src/access/secret.ts'
import { maskSecrets, SECRET_PREFIXES } from '../../../src/core/shared/text.ts'
import { urlPath } from '../../helper/code-point.ts'

function encode (character: string, times: number): string {
  return times === 0 ? character : `%${'25'.repeat(times - 1)}${character.charCodeAt(0).toString(16)}`
}

t.test('K66: a secret is masked wherever it stands and however it is encoded', async () => {
  const kinds = Object.keys(SECRET_PREFIXES) as Array<keyof typeof SECRET_PREFIXES>
  fc.assert(fc.property(fc.constantFrom(...kinds), fc.array(fc.nat({ max: 3 }), { minLength: 42, maxLength: 42 }), urlPath, (kind, times, around) => {
    const secret = [...createSecret(kind)].map((character, index) => encode(character, times[index] ?? 0)).join('')
    return !maskSecrets(`${around}/${secret}/${around}`).includes(secret.slice(-20))
  }))
})

t.test('K66: the rest of a text stays as it is', async (t) => {
  const token = createSecret('token')
  t.equal(maskSecrets(`//t/${token}/a?b=${token.toUpperCase()}`), '//t/-/a?b=-')
  t.equal(maskSecrets(token.slice(0, -10)), '-', 'most of one')
  for (const text of ['/skills/demo', '/skills/tasks_report', '/skills/a%20b_c', '/skills/sks_short', '/skills/%zz', '%'.repeat(100)]) t.equal(maskSecrets(text), text)
})

t.test('K66: a long text costs little', async (t) => {
  const start = performance.now()
  for (const part of ['%25', '25', 'sks_', '%73%6b', 's%2525', '_']) maskSecrets('%' + part.repeat(16_000))
  t.ok(performance.now() - start < 1_000)
})
