import fc from 'fast-check'
import t, { type Test } from 'tap'
import { STOP_WORDS, tokenize, wordMatcher } from '../../../src/core/search/words.ts'
import type { SkillManager } from '../../../src/core/skill-manager.ts'
import { codePoint } from '../../helper/code-point.ts'
import { startManager } from '../../helper/skills.ts'
import { checkTime } from '../../helper/timing.ts'

type Skills = Readonly<Record<string, {
  readonly label?: string
  readonly description?: string
  readonly headings?: readonly string[]
}>>

async function startSearch (t: Test, skills: Skills): Promise<SkillManager> {
  const root = t.testdir(Object.fromEntries(Object.entries(
    skills).map(([name, { label = name, description = '', headings = [] }]) => {
    const lines = ['---', `name: ${JSON.stringify(label)}`, `description: ${JSON.stringify(description)}`, '---',
      ...headings.map((text) => `# ${text}`), '']
    return [name, { 'SKILL.md': lines.join('\n') }]
  })))
  return await startManager(t, [root])
}

t.test('K46: ranking', async (t) => {
  const skills = await startSearch(t, {
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
  const found = await skills.search('pdf')
  t.same(found.slice(0, 2), ['pdf', 'fill-pdf-forms'], 'the name that is only the word first')
  t.same(new Set(found), new Set(['pdf', 'fill-pdf-forms', 'pdfs-of-many-kinds', 'reader', 'manual']))
  t.same(await skills.search('PDF'), found)
  t.equal((await skills.search('merge lists'))[0], 'both')
  t.same(await skills.search('portable'), ['pdfs-of-many-kinds'], "by the frontmatter's name")
  t.equal((await skills.search('merging'))[0], 'merging-things', 'the word itself before its other forms')
  const same = { description: 'x1' }
  t.same(await (await startSearch(t, { b: same, a: same, Z: same })).search('x1'), ['Z', 'a', 'b'])
})

t.test('K46: what a query finds', async (t) => {
  const skills = await startSearch(t, {
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
    biao: { headings: ['电子表格'] },
    strasse: { description: 'Die Straße, ΟΔΟΣ, ﬁle, ｶﾞ' },
    nodejs: { description: 'Node.js, read_my_file2' }
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
    ['天下', [], 'no misspelling of another word'],
    ...['STRASSE', 'οδος', 'ガ'].map((query) => [query, ['strasse']] as const),
    ...['nodejs', 'readmy', 'myfile2'].map((query) => [query, ['nodejs']] as const)
  ]
  for (const [query, names, why = query] of table) {
    t.same([...await skills.search(query)].sort(), names, `${query}: ${why}`)
  }
  for (const query of ['', '   ', '.*', '(a+)+$', '[', '\\', '\0', '?', '*', '\ud800', '__proto__', 'toString']) {
    t.same(await skills.search(query), [], JSON.stringify(query))
  }
})

t.test('K64: a search finds exactly what a search in the visible skills alone finds', async (t) => {
  const word = fc.constantFrom(
    'merge', 'merging', 'merger', 'mergw', 'lists', 'front-end', 'frontend', 'c#', 'the', '日本語', '本', 'pdf', 'pdfs',
    '🚀'
  )
  const text = fc.array(word, { maxLength: 4 }).map((words) => words.join(' '))
  const fields = fc.record({ description: text, headings: fc.array(text, { maxLength: 2 }), isVisible: fc.boolean() })
  const given = fc.array(fields, { maxLength: 12 })
  await fc.assert(fc.asyncProperty(given, fc.array(text, { minLength: 20, maxLength: 20 }), async (given, queries) => {
    const named = given.map((fields, index) => [String(index), fields] as const)
    const visible = named.filter(([, { isVisible }]) => isVisible)
    const names = new Set(visible.map(([name]) => name))
    const all = await startSearch(t, Object.fromEntries(named))
    const view = all.createView('some', () => (name: string) => names.has(name))
    const found = await Promise.all(queries.map((query) => view.search(query)))
    const alone = await startSearch(t, Object.fromEntries(visible))
    const expected = await Promise.all(queries.map((query) => alone.search(query)))
    return found.every((names, index) => [...names].sort().join() === [...expected[index] ?? []].sort().join())
  }), { numRuns: 20 })
})

t.test('K46: any text is found by its own words', async (t) => {
  const texts = fc.sample(fc.string({ unit: codePoint, minLength: 1, maxLength: 200 }), 100)
  const skills = await startSearch(t, Object.fromEntries(texts.map((label, index) => [`s${index}`, { label }])))
  for (const [index, text] of texts.entries()) {
    const isFound = (await skills.search(text)).includes(`s${index}`)
    t.equal(isFound, tokenize(text).some((word) => !STOP_WORDS.has(word)), JSON.stringify(text))
  }
})

t.test('K74: a matcher marks the words by which a query finds a text', async (t) => {
  const isFound = wordMatcher('merging the PDF fi')
  for (const word of ['merge', 'Merged', 'pdf', 'PDFs']) t.ok(isFound(word), word)
  for (const word of ['the', 'emerge', 'list', 'file']) t.notOk(isFound(word), word)
  t.ok(wordMatcher('calc')('calculator'))
})

t.test('K9: no text takes long or overflows the stack, whatever it unfolds to', async (t) => {
  const skills = await startSearch(t, { demo: { description: 'alpha beta' } })
  await skills.search('alpha')
  const units = ['a', 'ab ', '(a+)+$', 'a-', '日', '\u6f22\u5b57', '\ufdfa', '\u0301\u0323', '\uff9e\u0316',
    '\u05b0\u0591', '🚀']
  for (const unit of units) {
    const text = `a${unit.repeat(65_536 / unit.length)}`
    await checkTime(t, 100, () => tokenize(text), JSON.stringify(unit))
    await checkTime(t, 100, () => skills.search(text), `a query of ${JSON.stringify(unit)}`)
  }
})
