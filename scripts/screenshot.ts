/**
 * Writes docs/catalogue.png, the picture of the README: the page of the example skills in a Chromium of this machine.
 *
 *   npm run screenshot
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

const PICTURE = fileURLToPath(new URL('../docs/catalogue.png', import.meta.url))
const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const SKILLS = fileURLToPath(new URL('../skills', import.meta.url))

const service = spawn(process.execPath, [MAIN, SKILLS, '--port', '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
let url: string | undefined
while (url === undefined) {
  const [line] = await once(service.stdout, 'data') as [Buffer]
  url = /listening at (http:\/\/[^\s"]+)/.exec(line.toString())?.[1]
}
const browser = await chromium.launch({
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium', args: ['--no-sandbox']
})
const page = await browser.newPage({ viewport: { width: 1100, height: 760 }, colorScheme: 'light' })
await page.goto(url)
await page.screenshot({ path: PICTURE })
await browser.close()
service.kill()
console.log('docs/catalogue.png written')
