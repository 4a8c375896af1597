import { EventEmitter } from 'node:events'
import fc from 'fast-check'
import t from 'tap'
import type { Catalog, SkillRef } from '../../../src/core/catalog.ts'
import { CatalogSearch } from '../../../src/core/search/catalog-search.ts'
import { MAX_TERM_CHARACTERS, tokenize, wordMatcher } from '../../../src/core/search/words.ts'
import { codePoint } from '../../helper/code-point.ts'
import { checkTime } from '../../helper/timing.ts'

interface Fields {
  readonly label?: string
  readonly description?: string
  readonly headings?: readonly string[]
}

/** A search in the skills of one root. */
function createSearch (skills: Readonly<Record<string, Fields>>) {
  const known = new Map<string, object>()
  const catalog = Object.assign(new EventEmitter(), { roots: [{}], skillsIn: () => known })
  const set = (name: string, fields?: Fields): void => {
    if (fields === undefined) known.delete(name)
    else {
      const { label = name, description = '', headings = [] } = fields
      known.set(name, { name, metadata: { name: label, description }, headings })
    }
    catalog.emit('changed', [{ root: 0, name }])
  }
  for (const [name, fields] of Object.entries(skills)) set(name, fields)
  const search = new CatalogSearch(catalog as unknown as Catalog)
  const find = (query: string, sees: (skill: SkillRef) => boolean = () => true) => search.search(query, sees)
  return { find, set }
}

t.test('K46: words are folded, and joined words are known by both spellings', async (t) => {
  const table: ReadonlyArray<readonly [text: string, words: readonly string[]]> = [
    ['', []],
    ['  \n\t…—!?', []],
    ['Fill a PDF form', ['fill', 'a', 'pdf', 'form']],
    ['read_my_file2', ['read', 'my', 'file2', 'readmy', 'myfile2']],
    ['Node.js v1.10', ['node', 'js', 'nodejs', 'v1', '10', 'v110']],
    ['don’t', ['don', 't', 'dont']],
    ['C# and C++, F#; A#b issue#12', ['c#', 'csharp', 'and', 'c++', 'cpp', 'f#', 'fsharp', 'a', 'b', 'issue', '12']],
    ['.NET (ASP.NET)', ['.net', 'dotnet', 'asp', 'net', 'aspnet']],
    ['Crème cre\u0300me', ['creme', 'creme']],
    ['ＰＤＦ ﬁle', ['pdf', 'file']],
    ['STRASSE STRAẞE Straße ΟΔΟΣ οδος KAPI kapı', ['strasse', 'strasse', 'strasse', 'οδοσ', 'οδοσ', 'kapi', 'kapi']],
    ['Привет, мир 한국어', ['привет', 'мир', '한국어']],
    ['PDFを作る', ['pdf', 'を作', '作る', 'る']],
    ['𠮷野', ['𠮷野', '野']],
    ['🚀 ship it 🇳🇴', ['🚀', 'ship', 'it', '🇳🇴']],
    ['\ud800x __proto__', ['x', 'proto']],
    ['x'.repeat(5_000), ['x'.repeat(MAX_TERM_CHARACTERS)]]
  ]
  for (const [text, words] of table) t.same(tokenize(text), words, JSON.stringify(text.slice(0, 50)))
  t.same(tokenize('ｶﾞ'), tokenize('ガ'), 'half-width, and a voicing mark stays')
  t.not(tokenize('が')[0], tokenize('か')[0])
})

t.test('K46: ranking', async (t) => {
  const { find } = createSearch({
    pdf: {},
    'fill-pdf-forms': {},
    'pdfs-of-many-kinds': { label: 'Portable documents' },
    reader: { description: 'Reads PDF' },
    manual: { headings: ['Introduction', 'PDF'] },
    other: { description: 'Nothing' },
    both: { description: 'merge lists' },
    one: { description: 'merge', headings: ['merge'] },
    'merging-things': {}
  })
  const found = await find('pdf')
  t.same(found.slice(0, 2), ['pdf', 'fill-pdf-forms'], 'the name that is only the word first')
  t.same(new Set(found), new Set(['pdf', 'fill-pdf-forms', 'pdfs-of-many-kinds', 'reader', 'manual']))
  t.same(await find('PDF'), found)
  t.equal((await find('merge lists'))[0], 'both')
  t.same(await find('portable'), ['pdfs-of-many-kinds'], "by the frontmatter's name")
  t.equal((await find('merging'))[0], 'merging-things', 'the word itself before its other forms')
  const same = { description: 'x1' }
  t.same(await createSearch({ b: same, a: same, Z: same }).find('x1'), ['Z', 'a', 'b'])
})

t.test('K46: what a query finds', async (t) => {
  const { find } = createSearch({
    calculator: { description: 'Exact arithmetic, no questions posed' },
    policy: {},
    weather: {},
    spreadsheet: {},
    cat: {},
    'commit-helper': { description: 'Writes commit messages' },
    'it-support': { description: 'What to do with a broken laptop' },
    'front-end': {},
    design: { description: 'Frontend pages' },
    csharp: { description: 'Code in C#' },
    templates: { description: 'Code in C++' },
    migrate: { description: 'From .NET to Java' },
    launch: { description: '🚀' },
    recettes: { description: 'Crème brûlée et œufs' },
    tokei: { description: '時計を読む' },
    biao: { headings: ['电子表格'] }
  })
  const table: ReadonlyArray<readonly [query: string, names: readonly string[], why?: string]> = [
    ['calcu', ['calculator'], 'the beginning of a word'],
    ['ca', [], 'two letters begin too much'],
    ['policies', ['policy']],
    ['wether', ['weather'], 'misspelt'],
    ['spredshet', ['spreadsheet']],
    ['cot', [], 'three letters are too few to be wrong'],
    ['how do I commit with the message', ['commit-helper'], 'small words are not searched for'],
    ['it', ['it-support'], 'but in names, when there is nothing else'],
    ['what is with there', []],
    ['frontend', ['design', 'front-end']],
    ['front-end', ['design', 'front-end']],
    ['c#', ['csharp']],
    ['C++', ['templates']],
    ['dotnet', ['migrate']],
    ['🚀', ['launch']],
    ['creme brulee', ['recettes']],
    ['BRÛL', ['recettes']],
    ['時計', ['tokei']],
    ['計', ['tokei']],
    ['表格', ['biao']],
    ['天下', [], 'no misspelling of another word']
  ]
  for (const [query, names, why = query] of table) t.same([...await find(query)].sort(), names, `${query}: ${why}`)
  for (const query of ['', '   ', '.*', '(a+)+$', '[', '\\', '\0', '?', '*', '\ud800', '__proto__', 'toString']) {
    t.same(await find(query), [], JSON.stringify(query))
  }
})

t.test('K52: the index follows what is added, replaced and removed', async (t) => {
  const { find, set } = createSearch({ a: { description: 'first' }, b: {} })
  t.same(await find('first'), ['a'])
  set('a', { description: 'second' })
  t.same([await find('first'), await find('second')], [[], ['a']])
  set('a')
  set('c', { description: 'second' })
  t.same([await find('second'), await find('b')], [['c'], ['b']])
})

t.test('K64: a search finds exactly what a search in the visible skills alone finds', async () => {
  const word = fc.constantFrom(
    'merge', 'merging', 'merger', 'mergw', 'lists', 'front-end', 'frontend', 'c#', 'the', '日本語', '本', 'pdf', 'pdfs', '🚀'
  )
  const text = fc.array(word, { maxLength: 4 }).map((words) => words.join(' '))
  const skill = fc.record({ description: text, headings: fc.array(text, { maxLength: 2 }), isVisible: fc.boolean() })
  await fc.assert(fc.asyncProperty(fc.array(skill, { maxLength: 12 }), text, async (skills, query) => {
    const all = createSearch({})
    const visible = createSearch({})
    for (const [key, { isVisible, ...fields }] of skills.entries()) {
      all.set(`s${key}`, fields)
      if (isVisible) visible.set(`s${key}`, fields)
    }
    const found = await all.find(query, ({ name }) => skills[Number(name.slice(1))]?.isVisible === true)
    return [...found].sort().join() === [...await visible.find(query)].sort().join()
  }))
})

t.test('K46: any text is found by its own words', async () => {
  await fc.assert(fc.asyncProperty(fc.string({ unit: codePoint, minLength: 1, maxLength: 200 }), async (name) =>
    (await createSearch({ [name]: {} }).find(name)).length === (tokenize(name).length > 0 ? 1 : 0)))
})

t.test('K74: a matcher marks the words by which a query finds a text', async (t) => {
  const isFound = wordMatcher('merging the PDF fi')
  for (const word of ['merge', 'Merged', 'pdf', 'PDFs']) t.ok(isFound(word), word)
  for (const word of ['the', 'emerge', 'list', 'file']) t.notOk(isFound(word), word)
  t.ok(wordMatcher('calc')('calculator'))
})

t.test('K9: no text takes long or overflows the stack, whatever it unfolds to', async (t) => {
  const { find } = createSearch({ demo: { description: 'alpha beta' } })
  await find('alpha')
  const units = ['a', 'ab ', '(a+)+$', 'a-', '日', '\u6f22\u5b57', '\ufdfa', '\u0301\u0323', '\uff9e\u0316', '\u05b0\u0591', '🚀']
  for (const unit of units) {
    const text = `a${unit.repeat(65_536 / unit.length)}`
    await checkTime(t, 100, () => tokenize(text), JSON.stringify(unit))
    await checkTime(t, 100, () => find(text), `a query of ${JSON.stringify(unit)}`)
  }
})
