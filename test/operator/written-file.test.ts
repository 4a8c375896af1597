import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readRegularFileSync, textForFile } from '../../src/operator/regular-file.ts'
import { baselineKeys, readBaseline, writeBaseline } from '../../src/validate/baseline.ts'

const LIMIT = 16_777_216

t.test('what would be too large to be read again is not written', async (t) => {
  const folder = t.testdir({ 'baseline.json': '{}' })
  const file = join(folder, 'baseline.json')
  const keyOf = baselineKeys(file, folder, [])
  const found = (length: number) => new Map([['x'.repeat(length), new Set(['code'])]])
  t.throws(() => { writeBaseline(file, found(LIMIT), keyOf) }, { message: /baseline\.json" cannot be written \(it would be larger than the 16777216 bytes that are read of it\)$/ })
  t.equal(fs.readFileSync(file, 'utf8'), '{}', 'the file before stays')
  writeBaseline(file, found(LIMIT - 1_000), keyOf)
  t.ok(readBaseline(file, keyOf).accepts('x'.repeat(LIMIT - 1_000), 'code'))
})

t.test('the longest text that is written is read', async (t) => {
  const file = join(t.testdir({}), 'file')
  fs.writeFileSync(file, textForFile('é'.repeat(LIMIT / 2)))
  t.equal(readRegularFileSync(file).length, LIMIT)
  t.throws(() => textForFile(`${'é'.repeat(LIMIT / 2)}x`))
})
