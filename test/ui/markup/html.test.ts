import fc from 'fast-check'
import t from 'tap'
import { checkContent } from '../../../src/core/format/hidden-text.ts'
import { escapeVisibly, html, trusted, visible } from '../../../src/ui/markup/html.ts'
import { sourceView } from '../../../src/ui/pages/source.ts'
import { codePoint } from '../../helper/code-point.ts'

/** Tags, and what a parser would take for more of them. */
function structure (markup: string): string[] {
  return Array.from(markup.matchAll(/<\/?[a-z]+|"[^"]*"|>/g), ([part]) => part.startsWith('"') ? '"' : part)
}

t.test('K74: no text that a template takes changes the elements and attributes around it', (t) => {
  const page = (text: string) => html`<p title="${text}">${text}<b>${[text, text]}</b></p>`.toString()
  const plain = structure(page(''))
  fc.assert(fc.property(fc.oneof(fc.string({ unit: codePoint }), fc.stringMatching(/^[<>&"'/=a-z -]*$/)), (text) => {
    t.strictSame(structure(page(text)), plain, { diagnostic: false })
    return true
  }), { numRuns: 300 })
  t.end()
})

t.test('a template writes markup as it is, lists one item after the other, and nothing for what is not there', (t) => {
  t.equal(html`${trusted('<i>')}${html`<b>${'<'}</b>`}${undefined}${null}${false}${0}${['a', html`<br>`, ['b']]}`.toString(), '<i><b>&lt;</b>0a<br>b')
  t.end()
})

t.test('characters that a person does not see are marks, with their numbers', (t) => {
  const numbers = (text: string) => Array.from(escapeVisibly(text).matchAll(/U\+[\dA-F]+/g), ([number]) => number)
  t.strictSame(numbers('a\u200bb\u202ec\u{e0041}d\u0007e\u2060\ufefff\u0085\u2066'), ['U+200B', 'U+202E', 'U+E0041', 'U+0007', 'U+2060', 'U+FEFF', 'U+0085', 'U+2066'])
  t.strictSame(numbers('start, \t tab, 👨\u200d👩\u200d👧, 技能, क\u094d\u200dष, line\r\nend'), [], 'what belongs to a text stays')
  t.strictSame(numbers('a\u200db'), ['U+200D'], 'a joiner that joins nothing hides something')
  t.equal(visible('<\u200b>').toString(), '&lt;<span class="hidden-character" title="zero-width character">U+200B</span>&gt;')
  t.end()
})

/** The numbers in the marks of a markup, those of one mark in one text. */
function marksOf (markup: string): string[] {
  return Array.from(markup.matchAll(/<span class="hidden-character"[^>]*>([^<]*)</g), ([, numbers = '']) => numbers)
}

t.test('K74: the source marks what nobody sees wherever it stands: at the start of a line, in a row of joiners', (t) => {
  const rows: ReadonlyArray<readonly [text: string, ...marks: string[]]> = [
    ['a\n\u200d\u200c\u200dx\n', 'U+200D U+200C U+200D'],
    ['\u200d\u200cx', 'U+200D U+200C'],
    ['a\n\ufeffx\n', 'U+FEFF'],
    ['\ufeffstart\n\ufeff', 'U+FEFF'],
    ['\ufeff\ufeff\u200d', 'U+FEFF U+200D'],
    ['é\u200d\u200c\u200d\u200c', 'U+200C U+200D U+200C'],
    ['é\u200b\u200d, \u{e0041}\u200c', 'U+200B U+200D', 'U+E0041 U+200C'],
    ['👩\ufe0f\ufe0f\u{e0100}', 'U+FE0F U+E0100'],
    ['\u007f\u200d\n\u0085\u200d', 'U+007F U+200D', 'U+0085 U+200D'],
    ['\ufeff👨\u200d👩\u200d👧\nक्\u200dष, می\u200cخواهم, ❤\ufe0f\u200d🔥\r\n']
  ]
  for (const [text, ...marks] of rows) {
    t.strictSame(marksOf(sourceView(text).markup.toString()), marks, JSON.stringify(text))
    t.equal(checkContent(text).length > 0, marks.length > 0, 'a finding says so too')
  }
  t.strictSame(marksOf(visible('\ufeffa').toString()), ['U+FEFF'], 'only a file begins with a byte order mark')
  t.end()
})

t.test('K74: what the pages mark is what the findings of SKILL.md are about, for any text', (t) => {
  const hidden = fc.constantFrom('\u200b', '\u200c', '\u200d', '\u2060', '\ufeff', '\u202e', '\u2069', '\u{e0041}', '\u{e007f}', '\u0085', '\u009f', '\u007f', '\u0007')
  const seen = fc.constantFrom('a', 'é', '\u00a0', 'ک', 'क्', '👩', '\ufe0f', '\u{e0100}', '\u{10ffff}', '\n', '\t', '\r')
  fc.assert(fc.property(fc.array(fc.oneof(seen, seen, hidden), { maxLength: 5 }), (parts) => {
    const text = parts.join('')
    const found = checkContent(text).length > 0
    return found === (marksOf(sourceView(text).markup.toString()).length > 0)
  }), { numRuns: 2_000 })
  t.end()
})

t.test('K74: the source has each line once, as far as it is shown', (t) => {
  const linesOf = (text: string) => Array.from(sourceView(text).markup.toString().matchAll(/<a id="L(\d+)"[^>]*>\d+<\/a>([^]*?)\n<\/span>/g), ([, number, line]) => `${number} ${line}`)
  t.strictSame(linesOf(''), ['1 '])
  t.strictSame(linesOf('\n'), ['1 '])
  t.strictSame(linesOf('\n\n'), ['1 ', '2 '])
  t.strictSame(linesOf('a\n\nb'), ['1 a', '2 ', '3 b'])
  t.strictSame(linesOf('a\r\nb\n'), ['1 a\r', '2 b'])
  t.match(sourceView('\n'.repeat(10_000)), { lines: 10_000, isCut: false })
  t.match(sourceView('\n'.repeat(10_001)), { lines: 10_000, isCut: true })
  t.end()
})

t.test('characters in a row that nobody sees are one mark, however many', (t) => {
  t.equal(escapeVisibly('a\u200b\u200b\u200bb'), 'a<span class="hidden-character" title="zero-width character">U+200B × 3</span>b')
  t.equal(escapeVisibly('\u200b\u202e'), '<span class="hidden-character" title="zero-width character, changes the direction of text">U+200B U+202E</span>')
  t.match(escapeVisibly('\u200b\u202e'.repeat(5_000)), /(?:U\+200B U\+202E ){4}and 9,992 more<\/span>$/)
  t.match(escapeVisibly('\u{e0041}'.repeat(100_000)), /^<span [^>]*>U\+E0041 × 100,000<\/span>$/)
  t.end()
})
