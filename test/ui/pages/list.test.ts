import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { readAssets } from '../../../src/ui/assets.ts'
import { highlighter } from '../../../src/ui/markup/highlight.ts'
import { buildService } from '../../helper/build.ts'
import { listedNames, type OpenedPage, openPage as open } from '../../helper/pages.ts'
import { skill } from '../../helper/skills.ts'

/** One character more than the format allows; uploads to OpenAI take it. */
const LONG = 'x'.repeat(1_025)

t.test('K74: a list is refined by validity, severity, folder and client, and each has an address', async (t) => {
  const { url } = await buildService(t, {
    files: { good: skill('good'), broken: { 'SKILL.md': 'no frontmatter' }, hidden: { 'SKILL.md': '---\nname: hidden\ndescription: Some text\n---\na\u200bb\n' } },
    options: { roots: ['skills', 'more'], siblings: { more: { other: skill('other'), long: { 'SKILL.md': `---\nname: long\ndescription: ${LONG}\n---\nText.\n` } } } }
  })
  const names = async (query: string) => listedNames((await open(`${url}/${query}`)).text)
  t.strictSame(await names('?valid=true'), ['good', 'hidden', 'other'])
  t.strictSame(await names('?valid=false'), ['broken', 'long'])
  t.strictSame(await names('?severity=warning'), ['hidden'])
  t.strictSame(await names('?root=more'), ['long', 'other'])
  t.strictSame(await names('?root=more&valid=true'), ['other'])
  t.strictSame(await names('?root=nobody'), [])
  t.strictSame(await names('?target=openai&valid=false'), ['broken'])
  t.strictSame(await names('?target=claude-code&valid=false'), [])
  t.strictSame(await names('?q=other&root=more'), ['other'])
  t.strictSame(await names('?target=nobody&root=&q='), await names(''), 'what says nothing is no choice')

  const { text, links } = await open(`${url}/?target=claude-code&root=skills`)
  t.match(text, /<option value="claude-code" selected>/)
  t.match(text, /<option value="skills" selected>/)
  t.match(text, /3 skills for Claude Code/)
  t.match(text, /<h2><a[^>]*><bdi>broken<[^]*?reads it differently/, 'the client decides on the mark')
  t.ok(links.includes('./?valid=true&root=skills&target=claude-code'), 'a choice keeps the others')
  t.match((await open(`${url}/?severity=warning`)).text, /1 skill with warnings</)
  t.match((await open(`${url}/?q=zzz&root=more`)).text, /href="\.\/\?q=zzz">Search among all skills<\/a> <a href="\.\/">Show all/)
})

t.test('K74: a choice that reads entries reads a bounded number for a page, and goes on from there', async (t) => {
  const files = Object.fromEntries(Array.from({ length: 520 }, (_, index) => [`s${index}`, { 'SKILL.md': `---\nname: s${index}\ndescription: d\n---\n${index % 250 === 0 ? 'a\u200bb' : 'x'}\n` }]))
  const { url } = await buildService(t, { files })
  const found: string[] = []
  const lines: string[] = []
  for (let next: string | undefined = '/?severity=warning'; next !== undefined;) {
    const page: OpenedPage = await open(new URL(next, url).href)
    found.push(...listedNames(page.text))
    lines.push(/id="count"[^>]*>([^<]*)/.exec(page.text)?.[1] ?? '')
    next = page.links.find((link) => link.includes('cursor='))
  }
  t.strictSame(found, ['s0', 's250', 's500'])
  t.match(lines, [/ skills? with warnings among the first 500 of 520/, / on this page, which ends at 520 of 520/])
})

t.test('K74: what a search has found is marked, in names, descriptions and other forms of the word', async (t) => {
  const { url } = await buildService(t, {
    files: {
      'pdf-forms': { 'SKILL.md': '---\nname: pdf-forms\ndescription: Fills <b>PDF</b> forms, \u200band extracts text. Extracting is fast\n---\nx\n' },
      技能: { 'SKILL.md': '---\nname: 技能\ndescription: 天气预报\n---\nx\n' }
    }
  })
  const { text } = await open(`${url}/?q=pdf+extract`)
  t.match(text, '<bdi><mark>pdf</mark>-forms</bdi>')
  t.match(text, /Fills &lt;b&gt;<mark>PDF<\/mark>&lt;\/b&gt; forms, <span class="hidden-character"[^>]*>U\+200B<\/span>and <mark>extracts<\/mark> text\. <mark>Extracting<\/mark> is fast/)
  t.match((await open(`${url}/?q=extracted`)).text, /and <mark>extracts<\/mark> text\. <mark>Extracting</)
  t.match((await open(`${url}/?q=${encodeURIComponent('天气')}`)).text, '<mark>天气预报</mark>')
})

t.test('K74: what a search has found is marked in any script, also where letters are composed of others', (t) => {
  for (const [query, text, marked] of [
    ['한국어', '이 한국어 문서', '이 <mark>한국어</mark> 문서'],
    ['ガイド', 'ガイド', '<mark>ガイド</mark>'],
    ['ガイド', '\uff76\uff9e\uff72\uff84\uff9e', '<mark>\uff76\uff9e\uff72\uff84\uff9e</mark>'],
    ['हिन्दी', 'यह हिन्दी है', 'यह <mark>हिन्दी</mark> है'],
    ['cafe', 'Un café, un CAFE\u0301', 'Un <mark>café</mark>, un <mark>CAFE\u0301</mark>'],
    ['ελλάδα', 'ΕΛΛΆΔΑ', '<mark>ΕΛΛΆΔΑ</mark>'],
    ['カ', 'ガイド', 'ガイド'],
    ['да', 'данные', '<mark>данные</mark>'],
    ['csv', '変換csv', '<mark>変換csv</mark>'],
    ['logs', 'one log, two logs', 'one <mark>log</mark>, two <mark>logs</mark>'],
    ['it', 'it is an item', '<mark>it</mark> is an item']
  ] as const) t.equal(highlighter(query)(text).toString(), marked, `${query} in ${text}`)
  t.end()
})

t.test('K74: a list of 50 skills takes less than 40 kB of the line, its style less than 12 and its script less than 10', async (t) => {
  const words = readFileSync(new URL('../../../docs/specification.md', import.meta.url), 'utf8').match(/[a-z]{2,}/gi) ?? []
  const word = (skill: number, index: number) => words[createHash('sha256').update(`${skill} ${index}`).digest().readUInt32LE() % words.length] ?? ''
  const describe = (number: number) => Array.from({ length: 90 }, (_, index) => word(number, index)).join(' ')
  const files = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`skill-${index}`, { 'SKILL.md': `---\nname: skill-${index}\ndescription: ${describe(index)}\n---\nx\n` }]))
  const { url } = await buildService(t, { files })
  const { text } = await open(url)
  t.equal(listedNames(text).length, 50)
  const sizeOf = (content: string | Buffer) => gzipSync(content).length
  t.ok(sizeOf(text) < 40_000, `${sizeOf(text)} bytes of HTML`)
  const { style, script } = readAssets()
  t.ok(sizeOf(style.bytes) < 12_000, `${sizeOf(style.bytes)} bytes of style`)
  t.ok(sizeOf(script.bytes) < 10_000, `${sizeOf(script.bytes)} bytes of script`)
})
