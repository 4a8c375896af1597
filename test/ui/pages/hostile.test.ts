import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { MAX_MAIN_FILE_BYTES } from '../../../src/core/shared/limits.ts'
import { MAX_MARKDOWN_CHARACTERS } from '../../../src/ui/markdown-renderer.ts'
import { buildService } from '../../helper/build.ts'
import { openPage as open } from '../../helper/pages.ts'
import { passTick, skill, skillText } from '../../helper/skills.ts'

/** Pages that are asked for meanwhile: all that fit into the time would say no more. */
const PAGES = 10

t.test('K75: while a text is rendered that takes its parser seconds, others are answered', async (t) => {
  const { url } = await buildService(t, { files: { slow: skill('slow', { 'SKILL.md': skillText('slow', '!['.repeat(MAX_MARKDOWN_CHARACTERS / 2 - 100)) }), other: skill('other') } })
  // The thread has started, and the page of the other skill is made.
  await open(`${url}/ui/skills/other`)
  const state = { isDone: false }
  const page = open(`${url}/ui/skills/slow`).finally(() => { state.isDone = true })
  let answered = 0
  while (!state.isDone && answered < PAGES) {
    t.equal((await open(`${url}/ui/skills/other`)).status, 200, { diagnostic: false })
    if (!state.isDone) answered++
  }
  t.match((await page).text, /Shown as plain text: rendering it takes too long\./)
  t.ok(answered > 3, `${answered} pages meanwhile`)
})

t.test('K75: a body of 50,000 marks of quotation, and one of 1 MiB, are plain text with the reason', async (t) => {
  const head = skillText('large', '')
  const { url } = await buildService(t, {
    files: {
      quotes: skill('quotes', { 'SKILL.md': skillText('quotes', '>'.repeat(50_000)) }),
      large: skill('large', { 'SKILL.md': head + 'A plain text.\n'.repeat((MAX_MAIN_FILE_BYTES - head.length) / 14) })
    }
  })
  t.match(await open(`${url}/ui/skills/quotes`), { status: 200, text: /Shown as plain text: its quotations or lists are nested too deeply to be rendered\.[^]*&gt;&gt;&gt;/ })
  const { status, text } = await open(`${url}/ui/skills/large`)
  t.equal(status, 200)
  t.match(text, /Shown as plain text: it is too large to be rendered\. This is its beginning\./)
})

t.test('K74: text that nobody sees makes no page large', async (t) => {
  const hidden = (count: number) => 'a\u200b'.repeat(count)
  const skills = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`s${index}`, { 'SKILL.md': `---\nname: s${index}\ndescription: ${hidden(10_000)}\n---\nText.\n` }]))
  const { url } = await buildService(t, { files: { ...skills, body: skill('body', { 'SKILL.md': skillText('body', hidden(200_000)), 'run.txt': '\u200b'.repeat(300_000) }) } })
  for (const [path, limit] of [['/', 2_000_000], ['/ui/skills/body', 1_000_000], ['/ui/skills/body/files/SKILL.md', 1_000_000], ['/ui/skills/body/files/run.txt', 10_000]] as const) {
    const { status, text } = await open(url + path)
    t.equal(status, 200)
    t.ok(text.length < limit, `${path}: ${text.length} characters`)
  }
  t.match((await open(`${url}/ui/skills/body/files/run.txt`)).text, /U\+200B × [\d,]+</)
})

t.test('K74: a page is the same on every replica, whatever each has seen before', async (t) => {
  const files = { demo: skill('demo', { docs: { 'a.md': '# A' }, 'a.txt': 'x' }) }
  const first = await buildService(t, { files })
  // It has been asked for a revision that the skill has no more.
  await first.fetch('/catalog/demo')
  await t.test('the second one', async (t) => {
    const second = await buildService(t, { files })
    passTick(first.folder)
    for (const { root } of [first, second]) writeFileSync(join(root, 'demo/SKILL.md'), skillText('demo', 'A new text.\n'))
    const { host } = new URL(first.url)
    for (const path of ['/', '/ui/skills/demo', '/ui/skills/demo/files/SKILL.md?view=rendered', '/ui/skills/demo/files/a.txt']) {
      const [a, b] = [await open(first.url + path), await open(second.url + path)]
      t.equal(b.text.replaceAll(new URL(second.url).host, host).replace(/data-state="\w+"/, ''), a.text.replace(/data-state="\w+"/, ''), path)
      t.equal((await open(first.url + path, { headers: { 'if-none-match': a.headers.get('etag') ?? '' } })).status, 304)
    }
  })
})

t.test('K74: the source of a file on its page is what the API serves', async (t) => {
  const text = '---\nname: demo\n---\n\n\n<b>&amp;\t"x"  \r\n\u3000end\n'
  const { url, fetch } = await buildService(t, { files: { demo: { 'SKILL.md': text } } })
  const { text: page } = await open(`${url}/ui/skills/demo/files/SKILL.md`)
  const source = /<pre class="source"><code>([^]*)<\/code><\/pre>/.exec(page)?.[1] ?? ''
  const shown = source.replaceAll(/<a id="L\d+"[^>]*>\d+<\/a>|<\/?span[^>]*>/g, '')
    .replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&')
  t.equal(shown, (await fetch('/skills/demo/files/SKILL.md')).text)
})
