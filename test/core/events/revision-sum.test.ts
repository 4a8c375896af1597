import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { CATALOG_REVISION, RevisionSum } from '../../../src/core/events/revision-sum.ts'

type Skills = ReadonlyArray<readonly [name: string, revision: string | undefined]>

function sumOf (skills: Skills): string {
  const sum = new RevisionSum()
  for (const [name, revision] of skills) sum.add(name, revision)
  return sum.text
}

const SKILLS = fc.uniqueArray(fc.tuple(fc.string(), fc.option(fc.string(), { nil: undefined })), { selector: ([name]) => name, maxLength: 12 })

t.test('K92: equal skills have an equal sum, in any order and with any history', (t) => {
  fc.assert(fc.property(SKILLS, SKILLS, (skills, others) => {
    const sum = new RevisionSum()
    for (const [name, revision] of others) sum.add(name, revision)
    for (const [name, revision] of skills.toReversed()) sum.add(name, revision)
    for (const [name, revision] of others.toReversed()) sum.remove(name, revision)
    t.equal(sum.text, sumOf(skills))
    t.match(sum.text, CATALOG_REVISION)
  }))
  t.end()
})

t.test('K92: any other name, revision or number of skills is another sum', (t) => {
  const sums = ([[], [['a', 'r']], [['a', 's']], [['b', 'r']], [['a', undefined]], [['a', 'r'], ['b', 'r']], [['a', 'r'], ['b', 's']], [['a', 's'], ['b', 'r']]] as const)
    .map((skills) => sumOf(skills))
  t.equal(new Set(sums).size, sums.length)
  t.equal(sumOf([]), '0'.repeat(64))
  t.end()
})

t.test('K92: anybody can work it out', (t) => {
  const skills = [['weather', 'sha256:1'], ['calculator', 'sha256:2']] as const
  const sum = skills.map(([name, revision]) => BigInt(`0x${createHash('sha256').update(`${name}\0${revision}`).digest('hex')}`)).reduce((a, b) => a + b) % 2n ** 256n
  t.equal(sumOf(skills), sum.toString(16).padStart(64, '0'))
  t.end()
})
