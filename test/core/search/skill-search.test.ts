import fc from 'fast-check'
import t from 'tap'
import { type SearchedSkill, SkillSearch, tokenize, wordMatcher } from '../../../src/core/search/skill-search.ts'
import { MAX_TERM_CHARACTERS } from '../../../src/core/shared/limits.ts'
import { codePoint } from '../../helper/code-point.ts'
import { checkTime } from '../../helper/timing.ts'

type Fields = Partial<Omit<SearchedSkill, 'name'>>

function document (name: string, fields: Fields = {}): SearchedSkill {
  return { name, label: name, description: '', headings: [], ...fields }
}

function createSearch (skills: Readonly<Record<string, Fields>>): SkillSearch<string> {
  const search = new SkillSearch<string>()
  for (const [name, fields] of Object.entries(skills)) search.put(name, document(name, fields))
  return search
}

function namesFor (search: SkillSearch<string>, query: string, sees?: (name: string) => boolean, limit?: number): string[] {
  return search.search(query, sees, limit).map(({ key }) => key)
}

t.test('K46: words are folded, and joined words are known by both spellings', async (t) => {
  const table: ReadonlyArray<readonly [text: string, words: readonly string[]]> = [
    ['', []],
    ['  \n\t…—!?', []],
    ['Fill a PDF form', ['fill', 'a', 'pdf', 'form']],
    ['front-end', ['front', 'end', 'frontend']],
    ['read_my_file2', ['read', 'my', 'file2', 'readmy', 'myfile2']],
    ['Node.js v1.10', ['node', 'js', 'nodejs', 'v1', '10', 'v110']],
    ['the end.', ['the', 'end']],
    ['don’t', ['don', 't', 'dont']],
    ['C# and C++, F#; A#b issue#12', ['c#', 'csharp', 'and', 'c++', 'cpp', 'f#', 'fsharp', 'a', 'b', 'issue', '12']],
    ['.NET (ASP.NET)', ['.net', 'dotnet', 'asp', 'net', 'aspnet']],
    ['Crème brûlée', ['creme', 'brulee']],
    ['cre\u0300me', ['creme']],
    ['ＰＤＦ ﬁle', ['pdf', 'file']],
    ['İstanbul', ['istanbul']],
    ['STRASSE STRAẞE Straße ΟΔΟΣ οδος KAPI kapı', ['strasse', 'strasse', 'strasse', 'οδοσ', 'οδοσ', 'kapi', 'kapi']],
    ['Привет, мир', ['привет', 'мир']],
    ['한국어 문서', ['한국어', '문서']],
    ['日本語', ['日本', '本語', '語']],
    ['PDFを作る', ['pdf', 'を作', '作る', 'る']],
    ['データ、表', ['デー', 'ータ', 'タ', '表']],
    ['𠮷野', ['𠮷野', '野']],
    ['🚀 ship it 🇳🇴', ['🚀', 'ship', 'it', '🇳🇴']],
    ['\ud800x', ['x']],
    ['__proto__ constructor', ['proto', 'constructor']],
    ['x'.repeat(5_000), ['x'.repeat(MAX_TERM_CHARACTERS)]]
  ]
  for (const [text, words] of table) t.same(tokenize(text), words, JSON.stringify(text.slice(0, 50)))
  t.same(tokenize('ｶﾞ'), tokenize('ガ'), 'half-width, and a voicing mark stays')
  t.not(tokenize('が')[0], tokenize('か')[0])
})

t.test('K46: ranking', async (t) => {
  const skills = createSearch({
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
  t.same(namesFor(skills, 'pdf').slice(0, 2), ['pdf', 'fill-pdf-forms'], 'the name that is only the word first')
  t.same(new Set(namesFor(skills, 'pdf')), new Set(['pdf', 'fill-pdf-forms', 'pdfs-of-many-kinds', 'reader', 'manual']))
  t.same(namesFor(skills, 'PDF'), namesFor(skills, 'pdf'))
  t.equal(namesFor(skills, 'merge lists')[0], 'both')
  t.same(namesFor(skills, 'portable'), ['pdfs-of-many-kinds'], 'by the frontmatter\'s name')
  t.equal(namesFor(skills, 'merging')[0], 'merging-things', 'the word itself before its other forms')
  t.same(namesFor(skills, 'pdf', undefined, 1), ['pdf'])
  t.same(namesFor(createSearch({ b: { description: 'x1' }, a: { description: 'x1' }, Z: { description: 'x1' } }), 'x1'), ['Z', 'a', 'b'])
})

t.test('K46: what a query finds', async (t) => {
  const skills = createSearch({
    calculator: { description: 'Exact arithmetic, no questions asked' },
    calc: {},
    policy: {},
    weather: {},
    whether: {},
    spreadsheet: {},
    cat: {},
    'commit-helper': { description: 'Writes commit messages' },
    'it-support': { description: 'What to do with a broken laptop' },
    'front-end': {},
    design: { description: 'Frontend pages' },
    secrets: { description: 'Rotates an api-key' },
    tokens: { description: 'Revokes an apikey' },
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
    ['wether', ['weather', 'whether'], 'misspelt'],
    ['weather', ['weather'], 'not misspelt'],
    ['spredshet', ['spreadsheet']],
    ['cot', [], 'three letters are too few to be wrong'],
    ['how do I commit with the message', ['commit-helper'], 'small words are not searched for'],
    ['it', ['it-support'], 'but in names, when there is nothing else'],
    ['what is with there', []],
    ['frontend', ['design', 'front-end']],
    ['front-end', ['design', 'front-end']],
    ['apikey', ['secrets', 'tokens']],
    ['api-key', ['secrets', 'tokens']],
    ['c#', ['csharp']],
    ['C++', ['templates']],
    ['dotnet', ['migrate']],
    ['.NET', ['migrate']],
    ['🚀', ['launch']],
    ['creme brulee', ['recettes']],
    ['BRÛL', ['recettes']],
    ['時計', ['tokei']],
    ['計', ['tokei']],
    ['表格', ['biao']],
    ['格', ['biao']],
    ['天下', [], 'no misspelling of another word'],
    ['constructor', []]
  ]
  for (const [query, names, why = query] of table) t.same(namesFor(skills, query).sort(), names, `${query}: ${why}`)
  for (const query of ['', '   ', '.*', '(a+)+$', '[', '\\', '\0', '?', '*', '\ud800', '__proto__', 'toString']) {
    t.same(namesFor(skills, query), [], JSON.stringify(query))
  }
})

t.test('K52: skills are added, replaced and removed', async (t) => {
  const key = {}
  const search = new SkillSearch<object>()
  await search.addAll([[key, document('a', { description: 'first' })], [{}, document('b')]])
  t.equal(search.search('first')[0]?.key, key)
  search.put(key, document('a', { description: 'second' }))
  t.same(search.search('first'), [])
  t.equal(search.search('second')[0]?.key, key)
  search.discard(key)
  search.discard({})
  t.same(search.search('second'), [])
  t.equal(search.search('b').length, 1)
})

t.test('K53: other work goes on while the index is built', async (t) => {
  const skills = Array.from({ length: 500 }, (_, index) => [index, document(`s${index}`, { description: 'common words' })] as const)
  const search = new SkillSearch<number>()
  let turns = 0
  const timer = setInterval(() => { turns++ }, 0)
  await search.addAll(skills)
  clearInterval(timer)
  t.ok(turns > 5, `${turns} turns`)
  t.equal(search.search('common').length, 500)
})

t.test('K64: a search finds exactly what a search in the visible skills alone finds', async () => {
  const text = fc.array(fc.constantFrom(
    'merge', 'merging', 'merger', 'mergw', 'list', 'lists', 'front-end', 'frontend', 'c#', 'the', '日本語', '本', 'pdf', 'pdfs', 'cafe', '🚀'
  ), { maxLength: 4 }).map((words) => words.join(' '))
  const skill = fc.record({ description: text, headings: fc.array(text, { maxLength: 2 }), isVisible: fc.boolean() })
  fc.assert(fc.property(fc.array(skill, { maxLength: 12 }), text, (skills, query) => {
    const all = new SkillSearch<number>()
    const visible = new SkillSearch<number>()
    for (const [key, { isVisible, ...fields }] of skills.entries()) {
      all.put(key, document(`s${key}`, fields))
      if (isVisible) visible.put(key, document(`s${key}`, fields))
    }
    const found = all.search(query, (key) => skills[key]?.isVisible === true).map(({ key }) => key)
    const alone = visible.search(query).map(({ key }) => key)
    return found.sort().join() === alone.sort().join()
  }))
})

t.test('K46: any text is found by its own words', async () => {
  fc.assert(fc.property(fc.string({ unit: codePoint, maxLength: 200 }), (name) => {
    return namesFor(createSearch({ [name]: {} }), name).length === (tokenize(name).length > 0 ? 1 : 0)
  }))
})

t.test('K74: a matcher marks the words by which a query finds a text', async (t) => {
  const isFound = wordMatcher('merging the PDF fi')
  for (const word of ['merge', 'Merged', 'pdf', 'PDFs']) t.ok(isFound(word), word)
  for (const word of ['the', 'emerge', 'list', 'file']) t.notOk(isFound(word), word)
  t.ok(wordMatcher('calc')('calculator'))
})

t.test('K9: no text takes long or overflows the stack, whatever it unfolds to', async (t) => {
  const search = createSearch({ demo: { description: 'alpha beta' } })
  const units = ['a', 'ab ', '(a+)+$', 'a-', '日', '\u6f22\u5b57', '\ufdfa', '\u0301\u0323', '\uff9e\u0316', '\u05b0\u0591', '🚀']
  for (const unit of units) {
    const text = `a${unit.repeat(65_536 / unit.length)}`
    await checkTime(t, 100, () => tokenize(text), JSON.stringify(unit))
    await checkTime(t, 100, () => search.search(text), `a query of ${JSON.stringify(unit)}`)
  }
})
