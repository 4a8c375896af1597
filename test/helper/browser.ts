import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import type { Test } from 'tap'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']

/** The Chromium of this machine. Nothing is installed for the tests. */
const executablePath = (process.env['PATH'] ?? '').split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name))).find((path) => existsSync(path))

/** For tap's `skip`: why there is no test with a browser, else false. */
export const noBrowser: string | false = executablePath === undefined && `no browser: none of ${NAMES.join(', ')} is in PATH`

const WINDOW = { width: 1280, height: 800 }

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export async function startBrowser (t: Test): Promise<Browser> {
  const browser = await chromium.launch({ ...executablePath !== undefined && { executablePath }, args: ['--no-sandbox'] })
  t.teardown(() => browser.close())
  return browser
}

/**
 * A tab that is there already: a new one takes more CPU time than most tests in it. For tests that run one after another, and
 * leave no clock and no script behind. The test fails if the browser reports an error, a violation of the page's policy among
 * them, or if anything is asked of another host.
 * @param expected of errors that belong to the test
 */
export async function lendTab (t: Test, tab: Page, expected = /^$/): Promise<Page> {
  await tab.setViewportSize(WINDOW)
  await tab.emulateMedia({ colorScheme: null, forcedColors: null })
  failOnProblems(t, tab, expected)
  return tab
}

/** What Playwright asks for with the option of a new tab, until the end of the test. */
export async function emulate (t: Test, tab: Page, option: 'javaScriptEnabled: false' | 'bypassCSP: true'): Promise<void> {
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
    // An empty page between would take two processes of the browser. A test that fails may leave a route that never answers: nothing waits for it.
    page.removeAllListeners()
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    const unexpected = problems.filter((problem) => !expected.test(problem))
    if (unexpected.length > 0) throw new Error(`the browser reported: ${unexpected.join('; ')}`)
  })
}

interface AxeResults {
  readonly violations: ReadonlyArray<{ readonly id: string, readonly nodes: ReadonlyArray<{ readonly html: string, readonly failureSummary?: string }> }>
}

/** Puts axe on each page that is opened until the end of the test. To evaluate it there takes twice the CPU time, and a policy refuses its script. */
export async function addAxe (t: Test, tab: Page): Promise<void> {
  const session = await tab.context().newCDPSession(tab)
  t.teardown(() => session.detach())
  await session.send('Page.enable')
  await session.send('Page.addScriptToEvaluateOnNewDocument', { source: axe })
}

/**
 * What axe finds on a page, one line each.
 * @param only of these rules, default all
 */
export async function barriers (page: Page, only?: readonly string[]): Promise<readonly string[]> {
  // As text: functions would be compiled against the types of this process.
  const { violations } = await page.evaluate(`axe.run(${JSON.stringify({ ...only !== undefined && { runOnly: only }, resultTypes: ['violations'], preload: false })})`) as AxeResults
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary ?? ''}`))
}

/** How many pixels of a page lie beyond its right edge. */
export async function overflow (page: Page): Promise<number> {
  return await page.evaluate('document.documentElement.scrollWidth - innerWidth') as number
}
