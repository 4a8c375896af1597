import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'
import { type Browser, chromium, type Page, type Route } from 'playwright-core'
import t, { type Test } from 'tap'
import { buildService } from '../helper/build.ts'
import { buildGuarded } from '../helper/guarded.ts'
import { PROBES } from '../helper/markdown-probes.ts'
import { passTick, skill, skillText, until } from '../helper/skills.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']

/** The Chromium of this machine. Nothing is installed for the tests. */
const executablePath =
  (process.env['PATH'] ?? '').split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name))).find(
    (path) => existsSync(path))

/** For tap's `skip`: why there is no test with a browser, else false. */
const noBrowser: string | false = executablePath === undefined && `no browser: none of ${NAMES.join(', ')} is in PATH`

const WINDOW = { width: 1280, height: 800 }

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

async function startBrowser (t: Test): Promise<Browser> {
  const browser = await chromium.launch(
    { ...executablePath !== undefined && { executablePath }, args: ['--no-sandbox'] })
  t.teardown(() => browser.close())
  return browser
}

/**
 * A tab that is there already: a new one takes more CPU time than most tests in it. For tests that run one after
 * another, and
 * leave no clock and no script behind. The test fails if the browser reports an error, a violation of the page's policy
 * among
 * them, or if anything is asked of another host.
 * @param expected of errors that belong to the test
 */
async function lendTab (t: Test, tab: Page, expected = /^$/): Promise<Page> {
  await tab.setViewportSize(WINDOW)
  await tab.emulateMedia({ colorScheme: null, forcedColors: null })
  failOnProblems(t, tab, expected)
  return tab
}

/** What Playwright asks for with the option of a new tab, until the end of the test. */
async function emulate (t: Test, tab: Page, option: 'javaScriptEnabled: false' | 'bypassCSP: true'): Promise<void> {
  const session = await tab.context().newCDPSession(tab)
  t.teardown(() => session.detach())
  if (option === 'bypassCSP: true') await session.send('Page.setBypassCSP', { enabled: true })
  else await session.send('Emulation.setScriptExecutionDisabled', { value: true })
}

function failOnProblems (t: Test, page: Page, expected: RegExp): void {
  const problems: string[] = []
  // Until then it has what an earlier test has left.
  page.once('framenavigated', () => {
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
    })
    page.on('pageerror', (error) => { problems.push(error.message) })
    page.on('request', (request) => {
      if (!request.url().startsWith('http://127.0.0.1:')) problems.push(request.url())
    })
  })
  t.teardown(async () => {
    // An empty page between would take two processes of the browser. A test that fails may leave a route that never
    // answers: nothing waits for it.
    page.removeAllListeners()
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    const unexpected = problems.filter((problem) => !expected.test(problem))
    if (unexpected.length > 0) throw new Error(`the browser reported: ${unexpected.join('; ')}`)
  })
}

interface AxeResults {
  readonly violations: ReadonlyArray<{
    readonly id: string
    readonly nodes: ReadonlyArray<{ readonly html: string, readonly failureSummary?: string }>
  }>
}

/**
 * Puts axe on each page that is opened until the end of the test. To evaluate it there takes twice the CPU time, and a
 * policy refuses its script.
 */
async function addAxe (t: Test, tab: Page): Promise<void> {
  const session = await tab.context().newCDPSession(tab)
  t.teardown(() => session.detach())
  await session.send('Page.enable')
  await session.send('Page.addScriptToEvaluateOnNewDocument', { source: axe })
}

/**
 * What axe finds on a page, one line each.
 * @param only of these rules, default all
 */
async function barriers (page: Page, only?: readonly string[]): Promise<readonly string[]> {
  // As text: functions would be compiled against the types of this process.
  const { violations } = await page.evaluate(
    `axe.run(${JSON.stringify({
      ...only !== undefined && { runOnly: only }, resultTypes: ['violations'], preload: false
    })})`) as AxeResults
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary ?? ''}`))
}

/** How many pixels of a page lie beyond its right edge. */
async function overflow (page: Page): Promise<number> {
  return await page.evaluate('document.documentElement.scrollWidth - innerWidth') as number
}

const TEXT = `# Title

Some **text** with [a link](docs/more.md), \`code\`,
a very-long-word-${'x'.repeat(80)} and https://example.com/${'y'.repeat(80)}.

### Skipped

- [ ] open
- [x] done

| A column | Another | ${'wide '.repeat(30)}|
|---|--:|---|
| one | 2 | three |

\`\`\`py
print('${'z'.repeat(120)}')
\`\`\`

> A quotation with a hidden\u200b character.

![a picture](logo.svg)
`

const FILES = {
  weather: {
    'SKILL.md': skillText('weather', TEXT).replace('---\n#', 'license: MIT\nmetadata:\n  owner: somebody\n---\n#'),
    docs: { 'more.md': '## More\n\nText.' },
    'run.py': Array.from({ length: 40 }, (_, index) => `print(${index})\n`).join(''),
    'logo.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"/>',
    'data.bin': Buffer.from([0, 1]),
    // Too much for a page, and nearly nothing to lay out: axe looks at each line of a text.
    'large.txt': `text${' '.repeat(270_000)}`
  },
  'a b?c#d%': { 'SKILL.md': 'no frontmatter' },
  技能: skill('技能'),
  changed: skill('changed')
}

/** One of each kind. */
const PAGES = [
  '/?target=codex', '/?q=nothing-like-it', '/ui/skills/weather', '/ui/skills/a%20b%3Fc%23d%25',
  '/ui/skills/weather/files/run.py', '/ui/skills/weather/files/docs/more.md?view=rendered',
  '/ui/skills/weather/files/data.bin', '/ui/skills/weather/files/large.txt', '/ui/skills/weather/files',
  '/ui/skills/changed/changes', '/ui/status', '/ui/skills/wether'
]

const HOUR_MS = 3_600_000

/**
 * Rules of axe that depend on colours, which are the same at every width, or on the width, which is the same in every
 * colour.
 */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block']
const LAYOUT_RULES = ['scrollable-region-focusable']

/** Of a window, in pixels. */
const WIDE = 1280
const NARROW = 320

/** How many elements of the page are shown. */
const SHOWN = "[...document.querySelectorAll('*')].filter((element) => element.checkVisibility({ opacityProperty: " +
  'true, visibilityProperty: true })).length'

/**
 * The stop of the first Tab, and the stops that show no focus: after a key, the browser marks what a script focuses
 * too.
 */
const UNSEEN_STOPS = `(() => {
  const first = document.activeElement.textContent
  const stops = [...document.querySelectorAll('a[href], button, input, select, [tabindex]')]
    .filter((stop) => stop.tabIndex >= 0 && stop.checkVisibility())
  const unseen = stops.filter((stop) => {
    stop.focus()
    return document.activeElement !== stop || getComputedStyle(stop).outlineStyle === 'none'
  })
  return { first, unseen: unseen.map(({ outerHTML }) => outerHTML) }
})()`

/**
 * From here on, pages ask whether they are up to date when a test says so; by themselves they would ask on a busy
 * machine only.
 */
async function stopClock (page: Page): Promise<void> {
  await page.clock.install({ time: 0 })
  // A clock runs until it is stopped, and stops at a later time only.
  await page.clock.pauseAt(HOUR_MS)
}

const browser = noBrowser === false ? await startBrowser(t) : undefined
/** Of all tests that leave nothing behind. */
const shared = await browser?.newPage({ reducedMotion: 'reduce' })

t.test('K74: pages in a browser', { skip: noBrowser }, async (t) => {
  if (browser === undefined || shared === undefined) return
  const service = await buildService(t, { files: FILES })
  const { url, root } = service
  // A revision that was asked for can be compared with later ones.
  await service.fetch('/catalog/changed')
  passTick(service.folder)
  writeFileSync(join(root, 'changed/SKILL.md'), skillText('changed', `A new text.\n\n${'wide '.repeat(60)}\n`))

  /** In both colour schemes, at each width. */
  const checkPages = async (t: Test, addresses: readonly string[]): Promise<void> => {
    const tab = await lendTab(t, shared, /status of (?:401|404|503)/)
    await addAxe(t, tab)
    for (const address of addresses) await checkPage(t, tab, address)
  }

  const checkPage = async (t: Test, tab: Page, address: string): Promise<void> => {
    await tab.setViewportSize({ width: 640, height: 800 })
    await tab.goto(address)
    t.ok(await overflow(tab) <= 0, `${address}: nothing beyond the right edge at 200 % zoom`)
    await tab.emulateMedia({ colorScheme: 'light' })
    await tab.setViewportSize({ width: WIDE, height: 800 })
    t.ok(await overflow(tab) <= 0, `${address}: nothing beyond the right edge at ${WIDE} pixels`)
    t.strictSame(await barriers(tab), [], `${address}, light, ${WIDE} pixels`)
    const shown = await tab.evaluate(SHOWN)
    await tab.setViewportSize({ width: NARROW, height: 800 })
    t.ok(await overflow(tab) <= 0, `${address}: nothing beyond the right edge at ${NARROW} pixels`)
    await tab.emulateMedia({ colorScheme: 'dark' })
    // Other rules say the same where the same is shown.
    const rules = await tab.evaluate(SHOWN) === shown ? [...COLOUR_RULES, ...LAYOUT_RULES] : undefined
    t.strictSame(await barriers(tab, rules), [], `${address}, dark, ${NARROW} pixels`)
    await tab.keyboard.press('Tab')
    t.strictSame(
      await tab.evaluate(UNSEEN_STOPS), { first: 'Skip to the content', unseen: [] }, `${address}, by keyboard`
    )
  }

  await t.test('K74: axe finds nothing on any page, and none is wider than the window', async (t) => {
    await checkPages(t, PAGES.map((path) => url + path))
  })

  await t.test('K74: nor on the page of a service that has no folder', async (t) => {
    const none = await buildService(t, { files: null })
    await checkPages(t, [none.url, `${none.url}/ui/status`])
  })

  await t.test('K74: nor on that of a skill from right to left, with parts that have no text', async (t) => {
    const text = `# ${'مرحبا '.repeat(20)}\n\n#\n\n[](run.py) ![](logo.svg)\n\n| | b |\n|-|-|\n|1|2|\n\nمرحبا ` +
      '`f(x)`\n\n    f(x)\n'
    const { url } = await buildService(t, { files: { demo: { 'SKILL.md': skillText('demo', text), 'run.py': 'x' } } })
    await checkPages(t, [`${url}/ui/skills/demo`])
  })

  await t.test('K74: nor on that for callers who are not signed in', async (t) => {
    const guarded = await buildGuarded(t, {
      roots: { closed: { weather: skill('weather') } }, access: 'rules:\n  - { groups: [team], roots: [closed] }\n'
    })
    await checkPages(t, [guarded.url])
  })

  await t.test('K74: with scripts off one searches, filters, and comes to every file', async (t) => {
    const tab = await lendTab(t, shared)
    await emulate(t, tab, 'javaScriptEnabled: false')
    await tab.goto(url)
    await tab.getByRole('searchbox').fill('weather')
    await tab.getByRole('button', { name: 'Search' }).click()
    t.equal(new URL(tab.url()).searchParams.get('q'), 'weather')
    t.strictSame(await tab.locator('.skills h2').allInnerTexts(), ['weather'])
    await tab.getByRole('link', { name: 'Errors' }).click()
    t.match(await tab.locator('#results').innerText(), /No matching skills/)
    await tab.goto(url)
    await tab.getByLabel('Validated for').selectOption('codex')
    await tab.getByRole('button', { name: 'Search' }).click()
    t.match(await tab.locator('.count').innerText(), '4 skills for Codex')
    await tab.goto(url)
    await tab.getByRole('link', { name: 'weather' }).click()
    await tab.getByText('Cursor', { exact: true }).click()
    t.match(await tab.locator('.snippet:visible').innerText(), `${url}/mcp`)
    t.equal(await tab.locator('.copy:visible').count(), 0)
    await tab.getByRole('link', { name: 'a link' }).click()
    t.match(await tab.locator('.prose h2').innerText(), /More/)
    await tab.goBack()
    await tab.locator('.files').getByRole('link', { name: 'run.py' }).click()
    await tab.goto(`${tab.url()}#L7`)
    t.match(await tab.locator('.line:has(:target)').innerText(), /^7\s*print\(6\)\s*$/)
  })

  await t.test('K74: search while typing narrows the list, and its address can be sent to somebody', async (t) => {
    const tab = await lendTab(t, shared)
    await tab.goto(url)
    await tab.keyboard.press('/')
    await tab.keyboard.type('wea')
    await tab.waitForURL('**/?q=wea')
    t.strictSame(await tab.locator('.skills h2').allInnerTexts(), ['weather'])
    t.equal(await tab.locator('#count').innerText(), '1 skill for “wea”')
    t.equal(await tab.title(), 'wea – Skills')
    await tab.keyboard.press('ArrowDown')
    t.equal(await tab.locator(':focus').innerText(), 'weather')
    await tab.keyboard.press('ArrowUp')
    await tab.keyboard.press('Escape')
    await tab.waitForURL((address) => address.search === '')
    t.equal(await tab.locator('.skills h2').count(), 4)
    await tab.getByLabel('Validated for').selectOption('codex')
    await tab.waitForURL('**/?target=codex')
    await tab.goto(url)
    await tab.keyboard.press('/')
    await tab.keyboard.press('ArrowDown')
    await tab.keyboard.press('Enter')
    await tab.waitForURL('**/ui/skills/a%20b%3Fc%23d%25')
    await tab.goBack()
    await tab.keyboard.press('Control+k')
    t.equal(await tab.locator(':focus').getAttribute('id'), 'q')
    for (const key of ['/', 'Control+k']) {
      await tab.goto(`${url}/ui/skills/weather/files/run.py`)
      await tab.keyboard.press(key)
      await tab.locator('#q:focus').waitFor()
    }
  })

  await t.test('K74: search while typing says that it has failed, and goes on', async (t) => {
    const tab = await lendTab(t, shared, /status of 503|ERR_FAILED/)
    await tab.goto(url)
    await tab.getByRole('searchbox').pressSequentially('wea')
    const failed = tab.locator('#count', { hasText: 'The search failed' })
    for (const refuse of [(route: Route) =>
      route.fulfill({ status: 503, contentType: 'text/html', body: 'busy' }), (route: Route) => route.abort()]) {
      await tab.locator('#count', { hasText: '1 skill for “wea' }).waitFor()
      await tab.route('**/?q=weat', refuse)
      await tab.getByRole('searchbox').fill('weat')
      await failed.waitFor()
      t.strictSame(await tab.locator('.skills h2').allInnerTexts(), ['weather'])
      await tab.unroute('**/?q=weat')
      await tab.getByRole('searchbox').fill('weath')
    }
    await tab.waitForURL('**/?q=weath')
  })

  await t.test('K76: a snippet has the address of the address bar, and a button copies it', async (t) => {
    const tab = await lendTab(t, shared)
    await tab.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await tab.goto(`${url}/ui/skills/weather`)
    await tab.locator('#use-curl').focus()
    await tab.keyboard.press('ArrowRight')
    await tab.keyboard.press('ArrowRight')
    await tab.locator('.copy:visible').click()
    await tab.locator('.copy:visible', { hasText: 'Copied' }).waitFor()
    t.equal(await tab.evaluate('navigator.clipboard.readText()'), `npx skills add ${url} --skill weather`)
  })

  await t.test('K76: a snippet takes no address of the address bar that means something to a shell', async (t) => {
    const tab = await lendTab(t, shared)
    for (const [prefix, address] of [['/behind', `${url}/behind`], ['/$(id)', url], ["/';id;'", url]] as const) {
      // A proxy that takes any first segment away.
      await tab.route((asked) => asked.pathname.startsWith(prefix), async (route) => {
        await route.fulfill({ response: await route.fetch({ url: route.request().url().replace(prefix, '') }) })
      })
      await tab.goto(`${url}${prefix}/ui/skills/weather`)
      await tab.locator('.copy:visible').waitFor()
      t.equal(await tab.locator('#use-skills ~ .snippet code', { hasText: 'npx skills' })
        .textContent(), `npx skills add ${address} --skill weather`, prefix)
    }
  })

  await t.test('K74: the first stop leads past the navigation, headings and ranges of lines ' +
    'have addresses', async (t) => {
    const tab = await lendTab(t, shared)
    await tab.goto(`${url}/ui/skills/weather`)
    for (const key of ['Tab', 'Enter', 'Tab']) await tab.keyboard.press(key)
    t.equal(await tab.locator('main :focus').innerText(), 'Skills')
    await tab.locator('.prose h4 .anchor').click({ force: true })
    await tab.waitForURL('**/ui/skills/weather#user-content-skipped')
    await tab.reload()
    await tab.locator('.prose h4:target').waitFor()
    await tab.waitForFunction('scrollY > 0')
    await tab.goto(`${url}/ui/skills/weather/files/run.py`)
    await tab.locator('#L3').click()
    await tab.locator('#L5').click({ modifiers: ['Shift'] })
    await tab.waitForURL('**/run.py#L3-L5')
    await tab.reload()
    t.equal(await tab.locator('.line.chosen').count(), 3)
  })

  const clocked = await browser.newPage()
  await stopClock(clocked)

  await t.test('K77: an open page says when what it shows has changed, and not before', async (t) => {
    const tab = await lendTab(t, clocked)
    const ask = async (): Promise<number> => {
      const [response] = await Promise.all([
        tab.waitForResponse((response) => response.request().method() === 'HEAD'), tab.clock.runFor(10_000)
      ])
      return response.status()
    }
    const openAndChange = async (path: string, text: string): Promise<void> => {
      await tab.goto(url + path)
      t.equal(await ask(), 304)
      t.equal(await tab.locator('.outdated').innerText(), '')
      passTick(service.folder)
      writeFileSync(join(root, 'weather/SKILL.md'), skillText('weather', text))
      await ask()
      await tab.locator('.outdated', { hasText: 'has changed' }).waitFor()
    }
    await openAndChange('/ui/skills/weather', 'A new text.\n')
    t.match(await tab.locator('.prose').innerText(), 'A quotation', 'nothing is exchanged under the reader')
    await tab.getByRole('link', { name: 'What changed' }).click()
    t.match(await tab.locator('.diff ins').allInnerTexts(), ['+A new text.\n'])
    await tab.goto(`${url}/ui/skills/weather`)
    await tab.locator('.prose', { hasText: 'A new text.' }).waitFor()
    await openAndChange('/?q=weather', 'Another text.\n')
    await tab.locator('.outdated a').click()
    await tab.locator('.skills').waitFor()
    t.equal(await tab.locator('.outdated').innerText(), '')
  })

  await t.test('K77: a change is reported once, and only where the service says so', async (t) => {
    const tab = await lendTab(t, clocked, /status of/)
    let status = 0
    await tab.route('**', (route) => route.request().method() === 'HEAD' ? route.fulfill({ status }) : route.continue())
    const ask = async (answer: number, times = 1): Promise<string> => {
      status = answer
      const asked = Array.from({ length: times }, () =>
        tab.waitForResponse((response) => response.request().method() === 'HEAD'))
      await tab.evaluate(`for (let i = 0; i < ${times}; i++) document.dispatchEvent(new Event('visibilitychange'))`)
      await Promise.all(asked)
      // What the script does with an answer is done before the next one is here.
      await tab.evaluate("fetch(location.href, { method: 'HEAD' })")
      return await tab.locator('.outdated').innerText()
    }
    const shown = async (path: string, answer: number, times = 1): Promise<string> => {
      await tab.goto(url + path)
      return await ask(answer, times)
    }
    t.equal(await shown('/ui/skills/none', 404), '', 'what was not there is not gone')
    t.equal(await shown('/ui/skills/weather', 401), '', 'a 401 says nothing of the page')
    for (const status of [403, 429, 500, 502, 503]) t.equal(await ask(status), '', `nor does a ${status}`)
    t.equal(await ask(404), 'What this page shows is gone. Show the current state')
    t.equal(await ask(200), 'What this page shows has changed. Show the current state What changed')
    t.equal(await ask(304), '', 'it is again as it was')
    t.equal(await shown('/ui/skills/none', 200, 2), 'What this page shows has changed. Show the current state')
    t.match(await shown('/', 200), 'has changed')
    await tab.getByRole('searchbox').fill('wea')
    await tab.clock.runFor(100)
    await tab.locator('#count', { hasText: '“wea”' }).waitFor()
    t.equal(await tab.locator('.outdated').innerText(), '', 'a search shows what is there now')
  })
})

t.test('K75: no probe runs a script, loads anything or makes a form, with the policy of the pages and without', {
  skip: noBrowser
}, async (t) => {
  if (browser === undefined || shared === undefined) return
  const { url } = await buildService(t, {
    files: {
      demo: skill('demo', { 'SKILL.md': skillText('demo', PROBES.join('\n\n* * *\n\n')), 'evil.js': 'window.ran=1' })
    }
  })
  for (const bypassCSP of [false, true]) {
    const tab = await lendTab(t, shared)
    if (bypassCSP) await emulate(t, tab, 'bypassCSP: true')
    await tab.goto(`${url}/ui/skills/demo`)
    t.ok(await tab.locator('.prose hr').count() >= PROBES.length - 1)
    const found = await tab.evaluate(`(() => {
      const all = [...document.querySelectorAll('.prose, .prose *')]
      for (const element of all) {
        for (const type of ['mouseover', 'focus', 'blur', 'toggle', 'load', 'error']) {
          element.dispatchEvent(new Event(type, { bubbles: true }))
        }
      }
      const active = 'SCRIPT,STYLE,FORM,INPUT,BUTTON,SELECT,TEXTAREA,DIALOG,FRAME,IFRAME,OBJECT,EMBED,SVG,MATH,VIDEO,' +
        'AUDIO,LINK,META,BASE,TEMPLATE,DETAILS'
      return {
        ran: window.ran,
        tags: all.map(({ tagName }) => tagName).filter((tag) => active.split(',').includes(tag.toUpperCase())),
        handlers: all.flatMap((element) => element.getAttributeNames())
          .filter((name) => name.startsWith('on') || name === 'style'),
        schemes: [...new Set([...document.links].map(({ protocol }) => protocol))],
        images: [...document.images].map(({ src }) => src),
        clobbered: typeof document.getElementById + typeof document.cookie +
          (document.body === document.querySelector('body'))
      }
    })()`)
    t.strictSame(found, {
      ran: undefined, tags: [], handlers: [], schemes: ['http:', 'https:'], images: [], clobbered: 'functionstringtrue'
    }, bypassCSP ? 'without the policy' : 'with the policy')
  }
})

t.test('K77: the open page of a preview follows each save', { skip: noBrowser }, async (t) => {
  if (shared === undefined) return
  const options = { isPreview: true, watcher: true }
  const { url, root, skills } = await buildService(t, { files: { demo: skill('demo') }, options })
  await until(() => skills.parts.refresher.state.status === 'watching')
  const tab = await lendTab(t, shared)
  const following = tab.waitForResponse(`${url}/events`)
  await tab.goto(`${url}/ui/skills/demo`)
  await following
  writeFileSync(join(root, 'demo/SKILL.md'), skillText('demo', 'Saved a moment ago.\n'))
  await tab.locator('.prose', { hasText: 'Saved a moment ago.' }).waitFor()
})
