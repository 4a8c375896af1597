import fc from 'fast-check'
import t from 'tap'
import { createSegment } from '../../../src/core/search/segment.ts'
import { similarWords } from '../../../src/core/search/similar-words.ts'
import { stemOf } from '../../../src/core/search/stems.ts'
import { checkTime } from '../../helper/timing.ts'

/** By the definition: the whole matrix. */
function distanceOf (a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const here = [row]
    for (let column = 1; column <= b.length; column++) {
      here.push(Math.min((above[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1), (above[column] ?? 0) + 1, (here[column - 1] ?? 0) + 1))
    }
    above = here
  }
  return above.at(-1) ?? 0
}

const segmentOf = (words: Iterable<string>) => createSegment(new Map(Array.from(words, (word) => [word, [1]])))

t.test('the words within a distance are those that the whole matrix finds', async () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'é', '\uffee'), minLength: 1, maxLength: 9 })
  fc.assert(fc.property(fc.uniqueArray(word, { maxLength: 60 }), word, fc.constantFrom(1, 2), (words, term, max) => {
    const segment = segmentOf(words)
    const found = new Map(similarWords(segment, term, max).map(({ index, distance }) => [segment.words[index], distance]))
    return words.every((candidate) => {
      const distance = distanceOf(candidate, term)
      return found.get(candidate) === (distance <= max ? distance : undefined)
    })
  }), { numRuns: 500 })
})

t.test('words that begin so are a range', async () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '日'), minLength: 1, maxLength: 5 })
  fc.assert(fc.property(fc.uniqueArray(word, { maxLength: 60 }), word, (words, prefix) => {
    const segment = segmentOf(words)
    return segment.words.slice(...segment.range(prefix)).join() === words.filter((candidate) => candidate.startsWith(prefix)).sort().join()
  }), { numRuns: 500 })
})

t.test('K46: forms with the longest endings share a stem', async (t) => {
  for (const [term, form] of [
    ['visualize', 'visualization'], ['authorizing', 'authorization'], ['customize', 'customizations'], ['available', 'availability'], ['accessible', 'accessibility'],
    ['capability', 'capabilities'], ['responsible', 'responsibilities'], ['reliable', 'reliability'], ['scalable', 'scalability'], ['hospital', 'hospitalizations']
  ] as const) {
    for (const [asked, found] of [[term, form], [form, term]] as const) {
      t.ok(stemOf(asked)?.fits(found), `${asked}: ${found}`)
      t.ok(found.startsWith(stemOf(asked)?.beginning ?? '-'), `${found} is among those that are compared to ${asked}`)
    }
  }
})

t.test('a word and its other forms share a stem, and no word takes long', async (t) => {
  for (const [term, form] of [['merging', 'merge'], ['drafting', 'drafts'], ['policies', 'policy'], ['libraries', 'library'], ['scheduled', 'scheduling'], ['argue', 'arguing']] as const) {
    t.ok(stemOf(term)?.fits(form), `${term}: ${form}`)
    t.ok(stemOf(form)?.fits(term), `${form}: ${term}`)
    t.ok(form.startsWith(stemOf(term)?.beginning ?? '-'), `${form} is among those that are compared`)
  }
  for (const word of ['pdf', 'k8s', 'été', '日本語', 'x'.repeat(64)]) t.equal(stemOf(word), undefined, word)
  await checkTime(t, 50, () => { for (const letter of 'aeiouybs') for (let length = 4; length < 64; length++) stemOf(letter.repeat(length)) })
})
