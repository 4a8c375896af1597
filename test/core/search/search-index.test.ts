import t from 'tap'
import { MAX_MISSPELT_TERMS } from '../../../src/core/shared/limits.ts'
import { SearchIndex } from '../../../src/core/search/search-index.ts'
import type { SearchDocument } from '../../../src/core/search/weights.ts'
import { compareCodePoints } from '../../../src/core/shared/text.ts'
import { checkTime } from '../../helper/timing.ts'

type Fields = Partial<Omit<SearchDocument, 'name'>>

class Library {
  readonly index = new SearchIndex()
  readonly #names = new Set<string>()

  put (name: string, fields: Fields = {}): void {
    this.#names.add(name)
    this.index.put({ name, displayName: name, description: '', body: '', ...fields }, name)
  }

  remove (name: string): void {
    this.#names.delete(name)
    this.index.remove(name)
  }

  find (query: string): string[] {
    return [...this.index.search(query, [...this.#names].sort(compareCodePoints)).names]
  }
}

function createLibrary (documents: Readonly<Record<string, Fields>> = {}): Library {
  const library = new Library()
  for (const [name, fields] of Object.entries(documents)) library.put(name, fields)
  return library
}

const now = () => undefined

t.test('K46: a name counts for more than a description, and that for more than a body', async (t) => {
  const library = createLibrary({
    a: { body: 'pdf '.repeat(500) },
    b: { description: 'Reads PDF' },
    pdf: {},
    'fill-pdf-forms-in': {},
    c: { description: 'Nothing', body: 'else' },
    d: { body: 'One pdf' }
  })
  t.same(library.find('pdf'), ['pdf', 'fill-pdf-forms-in', 'b', 'a', 'd'])
  t.same(library.find('PDF'), library.find('pdf'))
})

t.test('K46: who has more of the words comes first, and a rare word says more than a common one', async (t) => {
  const library = createLibrary({ x: { body: 'common rare' }, y: { body: 'common' }, z: { body: 'common' }, w: { body: 'rare' } })
  t.same(library.find('common rare'), ['x', 'w', 'y', 'z'])
  const partial = createLibrary({ one: { description: 'merge', body: 'merge '.repeat(9) }, all: { body: 'merge lists '.repeat(9) } })
  t.same(partial.find('merge lists'), ['all', 'one'], 'all words in a body say more than one of them in a description')
})

t.test('K46: the frontmatter\'s name is found too', async (t) => {
  t.same(createLibrary({ folder: { displayName: 'Invoice Maker' } }).find('invoice'), ['folder'])
})

t.test('K46: beginnings of words, after the words themselves', async (t) => {
  const library = createLibrary({ calculator: {}, calc: {}, other: { body: 'calculate' } })
  t.same(library.find('calc'), ['calc', 'calculator', 'other'])
  t.same(library.find('calcu'), ['calculator', 'other'])
  t.same(library.find('ca'), [], 'two letters begin too much')
})

t.test('K46: what is misspelt is found when nobody spells it so', async (t) => {
  const library = createLibrary({ weather: {}, whether: {}, spreadsheet: {}, cat: {} })
  t.same(library.find('wether').sort(), ['weather', 'whether'])
  t.same(library.find('weather'), ['weather'], 'and not when somebody does')
  t.same(library.find('spredshet'), ['spreadsheet'], 'two wrong letters in a long word')
  t.same(library.find('cot'), [], 'three letters are too few to be wrong')
})

t.test('K46: other forms of an English word, after the word itself', async (t) => {
  const library = createLibrary({ merge: {}, 'merge-lists': {}, merging: {}, universe: {}, policy: {} })
  t.same(library.find('merging'), ['merging', 'merge', 'merge-lists'])
  t.same(library.find('merged'), ['merge', 'merging', 'merge-lists'])
  t.same(library.find('policies'), ['policy'])
  t.same(createLibrary({ police: {}, policy: {} }).find('policies'), ['policy'], 'a word that only begins so is no form of it')
  t.same(createLibrary({ report: { body: 'reports' }, other: { description: 'report' } }).find('report'), ['report', 'other'], 'of several forms the best counts')
  t.same(library.find('universities'), ['universe'], 'Porter takes these for one word')
  t.same(createLibrary({ charts: { description: 'Data visualization' } }).find('visualize'), ['charts'])
  t.same(createLibrary({ growth: { description: 'Scalability of services' } }).find('scalable'), ['growth'])
  const short = createLibrary({ reader: { description: 'a pdf' }, apis: { description: 'an api' }, drawer: { description: 'one map' }, drawn: { description: 'a map' } })
  t.same(short.find('pdfs'), ['reader'])
  t.same(short.find('apis'), ['apis'])
  t.same(short.find('mapping'), ['drawer', 'drawn'], 'a form of three letters')
  const code = createLibrary({ a: { body: 'ids' }, b: { body: 'k8s' }, c: { body: 'recettes' } })
  t.same(code.find('id'), [], 'short words have no other forms')
  t.same(code.find('k8'), [])
  t.same(code.find('recette'), ['c'])
})

t.test('K46: a question in plain words finds what its telling words say, and nothing by the others', async (t) => {
  const library = createLibrary({
    'commit-helper': { description: 'Writes commit messages', body: 'Use when somebody commits.' },
    'it-support': { description: 'What to do with a broken laptop' },
    many: { body: 'How do I do it? With a good deal of what is there.' }
  })
  t.equal(library.find('how do I commit with a good message')[0], 'commit-helper')
  t.notOk(library.find('how do I commit with the message').includes('many'))
  t.same(library.find('it'), ['it-support'], 'a small word alone is looked for in names')
  t.same(library.find('what is with there'), [])
  t.same(library.find('The'), [])
})

t.test('K46: of several words, what fits next to nothing is left out', async (t) => {
  const library = createLibrary({ 'convert-spreadsheets': { description: 'Converts spreadsheets', body: 'spreadsheet convert' }, far: { body: `converter ${'x '.repeat(500)}` } })
  t.same(library.find('convert spreadsheets'), ['convert-spreadsheets'])
  t.same(library.find('convert'), ['convert-spreadsheets', 'far'])
})

t.test('K46: a few words of a query may be misspelt, and the rest of them cost nothing', async (t) => {
  const library = createLibrary({ calculator: {}, second: {} })
  const unknown = Array.from({ length: MAX_MISSPELT_TERMS - 1 }, (_, index) => `unknown${index}`).join(' ')
  t.same(library.find(`${unknown} calcluator`), ['calculator'])
  t.same(library.find(`${unknown} unknown calcluator`), [])
  t.same(library.find(`${unknown} unknown second calculator`).sort(), ['calculator', 'second'], 'words that are spelt well do not count')
})

t.test('K46: the score of a single word does not depend on other skills', async (t) => {
  const library = createLibrary({ a: { body: 'common' } })
  const numbers = Array.from({ length: 30 }, (_, index) => index)
  const [withWord, without] = [numbers.map((number) => `with-${number}`), numbers.map((number) => `without-${number}`)]
  for (const name of withWord) library.put(name, { body: 'common' })
  for (const name of without) library.put(name, { body: 'different' })
  // Each pair of numbers has a rounding error of its own.
  const best = numbers.flatMap((found) => numbers.map((others) => {
    const { names: [name], scores: { 0: score } } = library.index.search('common', ['a', ...withWord.slice(0, found), ...without.slice(0, others)])
    return `${name} ${score}`
  }))
  t.same(new Set(best), new Set(['a 11']))
})

t.test('K46: accents, Japanese and Chinese', async (t) => {
  const library = createLibrary({
    recettes: { description: 'Crème brûlée et œufs', body: 'Préparer à l’avance' },
    tokei: { description: '時計を読む', body: '東京の天気' },
    biao: { body: '电子表格' }
  })
  t.same(library.find('creme brulee'), ['recettes'])
  t.same(library.find('PRÉPARER'), ['recettes'])
  t.same(library.find('prepa'), ['recettes'])
  t.same(library.find('天気'), ['tokei'])
  t.same(library.find('計'), ['tokei'], 'one character in the middle')
  t.same(library.find('表格'), ['biao'])
  t.same(library.find('格'), ['biao'], 'the last one')
  t.same(library.find('天下'), [], 'no misspelling of another word')
})

t.test('K46: a long word finds itself, wherever it is cut', async (t) => {
  const words = ['a', ''].map((start) => `${start}${'\u{10330}'.repeat(40)}`)
  for (const body of words) t.same(createLibrary({ gothic: { body } }).find(body), ['gothic'])
})

t.test('K46: equally good ones come by name, however they came in', async (t) => {
  const names = ['b', 'a', '\u{1F600}', '\uFF21', 'Z']
  const forward = createLibrary(Object.fromEntries(names.map((name) => [name, { body: 'same words' }])))
  const backward = createLibrary(Object.fromEntries(names.toReversed().map((name) => [name, { body: 'same words' }])))
  t.same(forward.find('words'), ['Z', 'a', 'b', '\uFF21', '\u{1F600}'])
  t.same(backward.find('words'), forward.find('words'))
})

t.test('K46: a query is text and no pattern, and has an end', async (t) => {
  const library = createLibrary({ demo: { body: 'alpha beta constructor' } })
  for (const query of ['', '   ', '.*', '(a+)+$', '[', '\\', '\0', '?', '*', '\ud800', '__proto__', 'toString']) t.same(library.find(query), [], JSON.stringify(query))
  t.same(library.find('constructor'), ['demo'])
  t.same(library.find('alpha AND (beta)'), ['demo'])
  for (const hostile of ['a'.repeat(10_000), 'ab '.repeat(4_000), '(a+)+$'.repeat(2_000), '日'.repeat(5_000), '\u0301'.repeat(10_000), '\ufdfa'.repeat(1_000)]) {
    await checkTime(t, 20, () => library.find(hostile), hostile.slice(0, 10))
  }
})

t.test('K52: a document is replaced and removed without a trace', async (t) => {
  const library = createLibrary({ a: { body: 'first' }, b: { body: 'second' } })
  library.put('a', { body: 'third' })
  t.same(library.find('first'), [])
  t.same(library.find('third'), ['a'])
  library.remove('b')
  library.remove('never-there')
  t.same(library.find('second'), [])
  t.same(library.index.search('second', ['a', 'b']).names, [])
  const names = ['a', 'b']
  t.same(library.index.search('fourth', names).names, [])
  library.put('b', { body: 'fourth' })
  t.same(library.index.search('fourth', names).names, ['b'], 'the same list of names finds what came')
  library.remove('b')
  t.same(library.index.search('fourth', names).names, [], 'and no longer what went')
})

t.test('K52: after many changes the index is like a new one', async (t) => {
  const library = createLibrary()
  for (let round = 0; round < 100; round++) {
    for (const name of ['a', 'b', 'c']) library.put(name, { description: `round ${round}`, body: `word${round} of ${name}` })
    await library.index.tidy(now)
  }
  const fresh = createLibrary(Object.fromEntries(['a', 'b', 'c'].map((name) => [name, { description: 'round 99', body: `word99 of ${name}` }])))
  for (const query of ['a', 'word99', 'round', 'word98', 'wor', 'wird99']) {
    t.same(library.index.search(query, ['a', 'b', 'c']), fresh.index.search(query, ['a', 'b', 'c']), query)
  }
})

t.test('K53: a search, and a change, during a merge are not disturbed', async (t) => {
  const library = createLibrary({ keep: { body: 'stays common' } })
  for (let round = 0; round < 100; round++) library.put('churn', { body: `gone${round} common` })
  let pauses = 0
  await library.index.tidy(() => {
    pauses++
    if (pauses === 10) library.put('late', { body: 'common' })
    t.same(library.find('common').sort(), pauses < 10 ? ['churn', 'keep'] : ['churn', 'keep', 'late'])
    return undefined
  })
  t.ok(pauses > 10, 'in pieces')
  t.same(library.find('common').sort(), ['churn', 'keep', 'late'])
  t.same(library.find('stays'), ['keep'])
})
