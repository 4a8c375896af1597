import t, { type Test } from 'tap'
import { MarkdownRenderer, MAX_MARKDOWN_CHARACTERS, type Rendering } from '../../src/ui/markdown-renderer.ts'

const CONTEXT = { path: 'SKILL.md', level: 2, skillPage: '../../ui/skills/demo', bytes: '../../skills/demo/files/' }

/** Takes the parser seconds. */
const ENDLESS = '!['.repeat(MAX_MARKDOWN_CHARACTERS / 2)

function createRenderer (t: Test, renderMs?: number) {
  const warnings: unknown[] = []
  const renderer = new MarkdownRenderer({ log: { warn: (...args: unknown[]) => { warnings.push(args) } }, ...renderMs !== undefined && { renderMs } })
  t.teardown(() => renderer.close())
  return { warnings, render: (text: string, key = text.slice(0, 100)): Promise<Rendering> => renderer.render(key, { text, context: CONTEXT }) }
}

t.test('K75: a text is rendered by another thread, once for each state of it (needs npm run build)', async (t) => {
  const { render } = createRenderer(t, 60_000)
  const [first, again] = await Promise.all([render('# A'), render('# A')])
  t.match(first, { html: /<h3 id="user-content-a">/ })
  t.equal(again, first)
  t.equal(await render('# A'), first)
  t.match(await render('# B'), { html: /user-content-b/ })
})

t.test('K75: a text that takes too long is shown as it is, and those after it are rendered', async (t) => {
  const { render, warnings } = createRenderer(t, 100)
  t.strictSame(await render(ENDLESS, 'endless'), { plain: 'slow' })
  t.strictSame(await render(ENDLESS, 'endless'), { plain: 'slow' }, 'it is not tried again')
  const { render: other } = createRenderer(t, 60_000)
  t.strictSame(await other('> '.repeat(25_000)), { plain: 'deep' }, '50,000 characters of quotes in quotes are no trouble')
  t.strictSame(warnings, [])
})

t.test('K75: a text that took too long is tried again after a minute: a busy machine may have been the reason', async (t) => {
  const clock = { time: 1_000 }
  const options = { log: { warn: () => {} }, renderMs: 100, now: () => clock.time }
  const renderer = new MarkdownRenderer(options)
  t.teardown(() => renderer.close())
  const render = (text: string) => renderer.render('key', { text, context: CONTEXT })
  t.strictSame(await render(ENDLESS), { plain: 'slow' })
  options.renderMs = 60_000
  t.strictSame(await render('# A'), { plain: 'slow' }, 'by its key it is the same text')
  clock.time += 59_000
  t.strictSame(await render('# A'), { plain: 'slow' })
  clock.time += 2_000
  const rendered = await render('# A')
  t.match(rendered, { html: /user-content-a/ })
  clock.time += 3_600_000
  t.equal(await render('# A'), rendered, 'what is rendered stays')
})

t.test('K75: a text beyond the limit, or with more markup than a page can hold, is shown as it is', async (t) => {
  const { render } = createRenderer(t, 60_000)
  t.strictSame(await render('x'.repeat(MAX_MARKDOWN_CHARACTERS + 1)), { plain: 'large' })
  t.strictSame(await render('a\u200b'.repeat(MAX_MARKDOWN_CHARACTERS / 2), 'hidden'), { plain: 'large' })
})
