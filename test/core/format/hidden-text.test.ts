import t from 'tap'
import { checkContent } from '../../../src/core/format/hidden-text.ts'

const codes = (text: string) => checkContent(Buffer.from(text)).map(({ code }) => code)

t.test('K9: hidden text is a warning that names the line', async t => {
  const rows: Array<[string, string]> = [
    ['tag characters', 'one\ntwo \u{E0041}\u{E0042}\n'],
    ['the end of the tag block', 'one\ntwo \u{E007F}\n'],
    ['zero width space', 'one\ntwo\u200B\n'],
    ['word joiner', 'one\ntwo\u2060\n'],
    ['a joiner between Latin letters', 'one\nt\u200Dwo\n'],
    ['a joiner at the start of a line', 'one\n\u200Dtwo\n'],
    ['joiners in a row', 'one\né\u200D\u200Cè\n'],
    ['variation selectors in a row', 'one\n😀\u{E0158}\u{E0159}\n'],
    ['those of the first block', 'one\n❤\uFE0F\uFE01\n'],
    ['a byte order mark in the middle', 'one\n\uFEFFtwo\n'],
    ['right-to-left override', 'one\n\u202Etwo\n'],
    ['an isolate', 'one\n\u2066two\n'],
    ['a terminal escape', 'one\n\u001b[2Jtwo\n'],
    ['NUL', 'one\ntwo\0\n'],
    ['DEL', 'one\ntwo\u007f\n'],
    ['a control character beyond ASCII', 'one\ntwo\u0085\n'],
    ['the last of them', 'one\ntwo\u009f\n']
  ]
  for (const [name, text] of rows) {
    const findings = checkContent(Buffer.from(text))
    t.equal(findings.length, 1, name)
    t.match(findings[0], { severity: 'warning', message: /^SKILL\.md contains .+, the first in line 2$/, fix: /^Remove .+ line 2$/ }, name)
  }
})

t.test('K9: each kind of hidden text is reported once', async t => {
  t.strictSame(codes('\u200B\u200B\u202E\u202E\u{E0041}\0\0'),
    ['zero_width_characters', 'bidi_control_characters', 'hidden_tag_characters', 'control_characters'])
})

t.test('ordinary text of any language hides nothing', async t => {
  const rows = ['', 'plain\ttext\r\n\f', '\uFEFFwith a byte order mark', '“quotes” – dashes … é', '技能 навык', '👩\u200D💻 family', 'می\u200Cخواهم', 'क्\u200Dष', '❤\uFE0F\u200D🔥', 'a\u00A0b', '1\uFE0F\u20E3 葛\u{E0100}飾', '\u{E0100}', '\u{10FFFF}']
  for (const text of rows) t.strictSame(codes(text), [], JSON.stringify(text))
})

t.test('K9: more than 500 lines are an info', async t => {
  t.strictSame(codes('x\n'.repeat(500)), [])
  t.strictSame(codes('x\n'.repeat(499) + 'x'), [])
  t.match(checkContent(Buffer.from('x\n'.repeat(500) + 'x')), [{ code: 'many_lines', severity: 'info', message: /501 lines/ }])
})
