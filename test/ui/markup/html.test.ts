import fc from 'fast-check'
import t from 'tap'
import { escapeVisibly, html, trusted, visible } from '../../../src/ui/markup/html.ts'
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
  t.strictSame(numbers('\ufeffstart, \t tab, 👨\u200d👩\u200d👧, 技能, क\u094d\u200dष, line\r\nend'), [], 'what belongs to a text stays')
  t.strictSame(numbers('a\u200db'), ['U+200D'], 'a joiner that joins nothing hides something')
  t.equal(visible('<\u200b>').toString(), '&lt;<span class="hidden-character" title="zero-width character">U+200B</span>&gt;')
  t.end()
})

t.test('characters in a row that nobody sees are one mark, however many', (t) => {
  t.equal(escapeVisibly('a\u200b\u200b\u200bb'), 'a<span class="hidden-character" title="zero-width character">U+200B × 3</span>b')
  t.equal(escapeVisibly('\u200b\u202e'), '<span class="hidden-character" title="zero-width character, changes the direction of text">U+200B U+202E</span>')
  t.match(escapeVisibly('\u200b\u202e'.repeat(5_000)), /(?:U\+200B U\+202E ){4}and 9,992 more<\/span>$/)
  t.match(escapeVisibly('\u{e0041}'.repeat(100_000)), /^<span [^>]*>U\+E0041 × 100,000<\/span>$/)
  t.end()
})
