import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { baselineKeys, readBaseline, writeBaseline } from '../../src/validate/baseline.ts'

t.test('K79: a baseline has a line for each path and code, sorted, and calls its own folder by a dot', (t) => {
  const folder = t.testdir()
  const file = join(folder, 'base.json')
  const keyOf = baselineKeys(file, join(folder, 'ci'), ['repo/a'])
  writeBaseline(file, new Map([['../skills/b', new Set(['z', 'a'])], ['..', new Set(['b'])], ['repo/a', new Set(['c'])]]), keyOf)
  t.equal(readFileSync(file, 'utf8'), `{
  ".": [
    "b"
  ],
  "repo/a": [
    "c"
  ],
  "skills/b": [
    "a",
    "z"
  ]
}
`)
  t.end()
})

t.test('K79: the key of a skill counts before its path in reports', (t) => {
  const folder = t.testdir({ 'base.json': '{"../skills/a": ["one"], "skills/a": ["two"], "skills/b": ["two"]}' })
  const file = join(folder, 'base.json')
  const { accepts } = readBaseline(file, baselineKeys(file, join(folder, '..'), []))
  t.strictSame(['skills/a', 'skills/b', 'skills/c'].map((path) => ['one', 'two'].filter((code) => accepts(path, code))), [['one'], ['two'], []])
  for (const text of ['null', '5', '"skills/a"', '[]', '{"a": "code"}', '{"a": [1]}', '{"a": null}']) {
    writeFileSync(file, text)
    t.throws(() => readBaseline(file, (path) => path), { name: 'PathError', message: /must be an object of paths, each with a list of codes/ }, text)
  }
  t.end()
})
