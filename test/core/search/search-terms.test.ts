import fc from 'fast-check'
import t from 'tap'
import { MAX_QUERY_TERMS, MAX_TERM_CHARACTERS } from '../../../src/core/shared/limits.ts'
import { isUnspaced, queryTermsOf, termsOf } from '../../../src/core/search/search-terms.ts'
import { codePoint } from '../../helper/code-point.ts'
import { checkTime } from '../../helper/timing.ts'

/** Characters: enough for quadratic time to show. */
const LONG_TEXT = 65_536

t.test('words are folded: case, accents, compatibility forms', async (t) => {
  const table: ReadonlyArray<readonly [text: string, terms: readonly string[]]> = [
    ['', []],
    ['  \n\t…—!?', []],
    ['Fill a PDF-form_now', ['fill', 'a', 'pdf', 'form', 'now']],
    ['read_file2 v1.10', ['read', 'file2', 'v1', '10']],
    ['Crème brûlée', ['creme', 'brulee']],
    ['cre\u0300me', ['creme']],
    ['ÉTÉ', ['ete']],
    ['don’t', ['don', 't']],
    ['ＰＤＦ ﬁle', ['pdf', 'file']],
    ['İstanbul', ['istanbul']],
    ['Ελλάδα', ['ελλαδα']],
    ['Привет, мир', ['привет', 'мир']],
    ['Straße', ['strasse']],
    ['한국어 문서', ['한국어', '문서']],
    ['😀 ok', ['ok']],
    ['\ud800x', ['x']],
    ['__proto__ constructor', ['proto', 'constructor']]
  ]
  for (const [text, terms] of table) t.same(termsOf(text), terms, JSON.stringify(text))
})

t.test('K46: upper case makes no difference, also where it has other letters', async (t) => {
  for (const word of ['straße', 'οδος', 'σοφός', 'kapı', 'ŉdirection', 'ﬁle', 'ſave', 'ᲀода']) {
    t.same(termsOf(word.toUpperCase()), termsOf(word), word)
    t.same(queryTermsOf(word.toUpperCase()), termsOf(word), `${word} in a query`)
  }
  t.same(termsOf('STRASSE STRAẞE ΟΔΟΣ KAPI'), ['strasse', 'strasse', 'οδοσ', 'kapi'])
})

t.test('where a script has no blanks, pairs of characters are words', async (t) => {
  t.same(termsOf('日本語'), ['日本', '本語', '語'])
  t.same(queryTermsOf('日本語'), ['日本', '本語'])
  t.same(queryTermsOf('語'), ['語'])
  t.same(termsOf('PDFを作る'), ['pdf', 'を作', '作る', 'る'])
  t.same(termsOf('データ、表'), ['デー', 'ータ', 'タ', '表'], 'a comma is no letter')
  t.same(termsOf('ｶﾞ'), termsOf('ガ'), 'half-width, and a voicing mark stays')
  t.not(termsOf('が')[0], termsOf('か')[0])
  t.same(queryTermsOf('𠮷野'), ['𠮷野'], 'beyond the basic plane')
  t.ok(isUnspaced('語'))
  for (const term of ['pdf', 'été', '한국어', '']) t.notOk(isUnspaced(term), term)
})

t.test('words are cut, and a query has sixteen of them, each once', async (t) => {
  t.same(termsOf('x'.repeat(5_000)), ['x'.repeat(MAX_TERM_CHARACTERS)])
  t.same(termsOf(`a${'\u{10330}'.repeat(40)}`), [`a${'\u{10330}'.repeat(31)}`], 'between two characters')
  t.same(queryTermsOf('b c b c'), ['b', 'c'])
  t.same(queryTermsOf('How do I use the C API?'), ['use', 'c', 'api'])
  t.same(queryTermsOf('What is PDF used for, using an API?'), ['pdf', 'api'])
  t.same(queryTermsOf('who is it'), ['who', 'is', 'it'], 'unless there is nothing else')
  t.equal(queryTermsOf(Array.from({ length: 400 }, (_, index) => `w${index}`).join(' ')).length, MAX_QUERY_TERMS)
})

t.test('K9: no text takes long or overflows the stack, whatever it unfolds to', async (t) => {
  for (const [name, unit] of [['ligatures of eighteen characters', '\ufdfa'], ['pairs', '\u6f22\u5b57'], ['accents', '\u0301\u0323'], ['voicing marks', '\uff9e\u0316'], ['Hebrew points', '\u05b0\u0591']] as const) {
    const text = `a${unit.repeat(LONG_TEXT / unit.length)}`
    t.ok(termsOf(text).length <= text.length, name)
    await checkTime(t, 100, () => termsOf(text), name)
  }
})

t.test('any text has words that are found again', async () => {
  fc.assert(fc.property(fc.string({ unit: codePoint, maxLength: 200 }), (text) => {
    const terms = new Set(termsOf(text))
    for (const term of terms) if (term === '' || term.length > MAX_TERM_CHARACTERS) return false
    // A single character of a script without blanks may stand at a beginning only.
    return queryTermsOf(text).every((term) => terms.has(term) || isUnspaced(term))
  }))
})
