import { EventEmitter } from 'node:events'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { finding } from '../../src/core/format/findings.ts'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
import type { TrustReport } from '../../src/schemas/trust.ts'
import type { SourceStatus } from '../../src/schemas/health.ts'
import type { RootPolicy } from '../../src/trust/trust.ts'
import { buildService } from '../helper/build.ts'
import { buildGuarded, newSecret } from '../helper/guarded.ts'
import { listedNames, type OpenedPage, openPage as open } from '../helper/pages.ts'
import { rawRequest, request } from '../helper/raw-http.ts'
import { passTick, skill, skillText } from '../helper/skills.ts'

t.test('K74: / is the list of skills for browsers, and the list of doors for programs', async (t) => {
  const { url } = await buildService(t, { files: { one: skill('one'), broken: { 'SKILL.md': 'no frontmatter' } } })
  const page = await open(url)
  t.equal(page.status, 200)
  t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  t.match(page.headers.get('vary'), /Accept/)
  t.match(
    page.text,
    /<h2><a href="\.\/ui\/skills\/one"><bdi>one<\/bdi><\/a><\/h2>\s*<p class="description" dir="auto">What one is for/
  )
  t.match(page.text, /2 skills/)
  t.match(page.text, /<bdi>broken<\/bdi>[^]*1 error/, 'a skill with errors is there')
  for (const accept of ['*/*', 'application/json']) {
    const doors = await open(url, { headers: { accept } })
    t.match(doors.headers.get('content-type'), 'application/json')
    t.match(doors.headers.get('vary'), /Accept/)
    t.match(JSON.parse(doors.text), { name: 'skillserve' })
  }
})

t.test('K74: search, filters and pages have addresses', async (t) => {
  const files = Object.fromEntries(Array.from({ length: 120 }, (_, index) =>
    [`skill-${String(index).padStart(3, '0')}`, skill(`skill-${String(index).padStart(3, '0')}`)]))
  const { url } = await buildService(
    t, { files: { ...files, weather: skill('weather'), broken: { 'SKILL.md': 'no frontmatter' } } }
  )

  const found = await open(`${url}/?q=weather`)
  t.strictSame(listedNames(found.text), ['weather'])
  t.match(found.text, /value="weather"/)
  t.match(found.text, /1 skill for “weather”/)
  t.strictSame(listedNames((await open(`${url}/?valid=false`)).text), ['broken'])

  const seen: string[] = []
  for (let next: string | undefined = '/'; next !== undefined;) {
    const page: OpenedPage = await open(new URL(next, url).href)
    seen.push(...listedNames(page.text))
    next = page.links.find((link) => link.includes('cursor='))
  }
  t.equal(seen.length, 122)
  t.equal(new Set(seen).size, 122)

  t.match(
    (await open(`${url}/?q=nothing-like-it`)).text,
    /No skill fits[^]*Show all skills/
  )
  t.match(await open(`${url}/?cursor=x`), { status: 400, text: /<h1>/ })
  t.match(await open(`${url}/?q=${'x'.repeat(1_001)}`), { status: 400 })
  t.equal((await open(`${url}/?q=a&q=b&utm=1`)).status, 200)
})

t.test('K74: the page of a skill says what it is for, how it is, how to use it, and what is in it', async (t) => {
  const { url } = await buildService(t, {
    files: {
      demo: {
        'SKILL.md': skillText('demo', '# Steps\n\nRead [more](docs/more.md).\n').replace(
          '---\n#', 'license: MIT\nmetadata:\n  owner: "<b>"\n---\n#'
        ),
        docs: { 'more.md': '# More' },
        'a.bin': Buffer.from([0, 1])
      }
    }
  })
  const { status, text, headers } = await open(`${url}/ui/skills/demo`)
  t.equal(status, 200)
  t.match(text, /<h1><bdi>demo<\/bdi><\/h1>\s*<p class="lead" dir="auto">What demo is for/)
  t.match(text, /verdict good">valid/)
  t.match(text, /<dt>license<\/dt><dd><span dir="auto">MIT/)
  t.match(text, /<dt>owner<\/dt><dd><span dir="auto">&lt;b&gt;/)
  t.match(text, /<h3 id="user-content-steps">/)
  t.match(text, /href="\.\.\/\.\.\/ui\/skills\/demo\/files\/docs\/more\.md\?view=rendered"/)
  t.match(text, /npx skills add http:\/\/127\.0\.0\.1:\d+ --skill demo/)
  for (const file of ['SKILL.md', 'docs/more.md', 'a.bin']) t.match(text, `href="../../ui/skills/demo/files/${file}"`)
  const { revision } = await (await fetch(`${url}/catalog/demo`)).json() as { readonly revision: string }
  t.match(text, revision)
  t.match(text, /≈ [\d,]+ in each turn<[^]*≈ [\d,]+ in use<[^]*≈ [\d,]+ with all files</)
  t.match(text, /<dt>Folder<\/dt><dd><bdi>skills<\/bdi>/)
  t.match(text, /works in all \d+ clients/)
  t.match(text, /<td>Claude Code<\/td><td><span class="verdict good">works<\/span>/)
  t.match(
    headers.get('content-security-policy'),
    /^default-src 'none'; script-src 'sha256-[\w+/=]+'; .*require-trusted-types-for 'script'/
  )
  t.match(Object.fromEntries(headers), {
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'x-robots-tag': 'noindex',
    'cache-control': 'no-cache'
  })
})

t.test('K74: a page shows each finding with its fix, and offers no client what it would not get', async (t) => {
  const { url } = await buildService(
    t, { files: { Broken: { 'SKILL.md': '---\nname: other\n---\nx\u200b' }, bare: {} } }
  )
  const { text } = await open(`${url}/ui/skills/Broken`)
  const { findings } = await (await fetch(`${url}/catalog/Broken`)).json() as {
    readonly findings: ReadonlyArray<{ readonly code: string }>
  }
  t.ok(findings.length > 2)
  for (const { code } of findings) t.match(text, `<code>${code}</code>`)
  t.match(text, /<span class="label">Fix<\/span>/)
  t.match(
    text, /<td>Agent Skills format<\/td><td><span class="verdict error">refuses it<\/span><\/td><td><a href="#\w+">/
  )
  for (const [, code = ''] of text.matchAll(/<a href="#(\w+)"><code>/g)) {
    t.match(text, ` id="${code}">`, 'each reason leads to its finding')
  }
  t.match(text, /files\/SKILL\.md#L\d+">\s*line \d+<\/a>/)
  t.match(text, /matters to \d+ clients/)
  t.notMatch(text, /npx skills add/)
  t.match(text, /MCP does not list the skill/)
  t.match(text, /curl -s/)
  t.match(text, 'U+200B')
  const { text: bare } = await open(`${url}/ui/skills/bare`)
  t.match(bare, /SKILL\.MD not found for skill &#39;bare&#39;\./)
  t.match(bare, /<p class="nothing">SKILL\.md cannot be read: see the findings\.<\/p>/)
  t.notMatch(bare, 'Accept: text/markdown', 'K76: curl would get an error')
  t.match(bare, 'bare/archive.zip')
  t.match(bare, /<p class="nothing">The skill has no files\.<\/p>/)
})

t.test('K74: a file has an address for each line, is rendered on request, or can be downloaded', async (t) => {
  const { url } = await buildService(t, {
    files: {
      demo: skill('demo', {
        'a.py': 'one\n<two>\n',
        'notes.md': '---\nx: 1\n---\n# Notes',
        'b.bin': Buffer.from([0, 1, 2]),
        'latin.txt': Buffer.from('caf\xe9', 'latin1'),
        'empty.txt': '',
        'large.txt': 'x'.repeat(99).concat('\n').repeat(10_000),
        'logo.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
        'lines.txt': '\n'.repeat(30_000)
      })
    }
  })
  const file = (path: string) => open(`${url}/ui/skills/demo/files/${path}`)
  const source = (await file('a.py')).text
  t.match(source, '<span class="line"><a id="L2" href="#L2" tabindex="-1">2</a>&lt;two&gt;\n</span>')
  t.notMatch(source, 'id="L3"')
  t.match(
    (await file('notes.md')).text,
    /href="\.\.\/\.\.\/\.\.\/\.\.\/ui\/skills\/demo\/files\/notes\.md\?view=rendered">Rendered/
  )
  t.match((await file('notes.md?view=rendered')).text, /<h2 id="user-content-notes">/)
  t.match(
    (await file('b.bin')).text,
    /3 bytes<[^]*octet-stream<[^]*sha256:[\da-f]{64}">[^]*not text[^]*skills\/demo\/files\/b\.bin" download/
  )
  t.match((await file('latin.txt')).text, /latin-1[^]*café/)
  const empty = (await file('empty.txt')).text
  t.match(empty, /The file is empty/)
  t.notMatch(empty, '1 line')
  t.match((await file('logo.svg')).text, /<img src="[^"]*\/skills\/demo\/files\/logo\.svg" alt="logo\.svg">[^]*&lt;svg/)
  const large = (await file('large.txt')).text
  t.ok(large.length < 600_000, `${large.length} characters`)
  t.match(large, /1\.0 MB[^]*This is the beginning\.\s<a href="[^"]*">The whole file/)
  t.ok((await file('lines.txt')).text.length < 1_500_000)
  t.match(await file('gone.txt'), { status: 404, text: /File &#39;gone\.txt&#39; not found in skill/ })
  t.match(await file('docs/%2e%2e%2f%2e%2e%2fx'), {
    status: 403, text: /Path traversal detected[^<]*\. Name a file relative to the skill, without leaving it\./
  })
})

t.test('K75: of a Markdown file that is too large to be rendered, the rendered page shows the beginning as plain ' +
  'text, and says both', async (t) => {
  const { url, fetch } = await buildService(
    t, { files: { demo: skill('demo', { 'guide.md': `# Guide\n\n${'some *text* '.repeat(100)}\n`.repeat(1_300) }) } }
  )
  const address = `${url}/ui/skills/demo/files/guide.md?view=rendered`
  const expected =
    /Shown as plain text: it is too large to be rendered\. This is its beginning\.<\/p>\s*<pre[^]*\*text\*/
  t.match((await open(address)).text, expected)
  t.equal((await fetch('/skills/demo/files')).status, 200, 'now its digest is known')
  const { text } = await open(address)
  t.match(text, expected)
  t.match(text, /guide\.md">Source</)
})

t.test('K74: names of any characters work on every page, and no text of a skill becomes markup', async (t) => {
  const names = ['a b?c#d%', '技能', '<img src=x>', '"quoted\'', 'x&amp;y', '%2e%2e', ';', 'ünï']
  const hostile = '---\nname: "<script>alert(1)</script>"\ndescription: ' +
    '"</p><script>alert(1)</script>"\n"<b>key</b>": ["<i>", {"<u>": null}]\n---\n<script>alert(1)</script>'
  const { url } = await buildService(t, {
    files: Object.fromEntries(names.map((name) => [name, { 'SKILL.md': hostile, [name]: { 'f <g>.txt': 'text' } }]))
  })
  const list = await open(url)
  const isClean = (text: string) =>
    t.notMatch(text.replace(/<script src="[^"]*" integrity="[^"]*" defer><\/script>/, ''), /<(?:script|b>|i>|u>|img)/)
  isClean(list.text)
  for (const name of names) {
    const link = `./ui/skills/${encodeURIComponent(name)}`
    t.ok(list.links.some((href) => decodeURIComponent(href) === decodeURIComponent(link)), name)
    const address = `${url}/ui/skills/${encodeURIComponent(name)}`
    const page = await open(address)
    t.equal(page.status, 200, name)
    isClean(page.text)
    const file = page.links.find((href) => href.endsWith('.txt'))
    t.ok(file, name)
    t.match(await open(new URL(file ?? '', address).href), { status: 200, text: />text\n/ }, `${name}: its file`)
  }
})

t.test('K74: pages are as fresh as the API: an edit is on the page that is loaded after it', async (t) => {
  const { url, root } = await buildService(t, { files: { demo: skill('demo', { 'a.txt': 'first' }) } })
  const first = await open(`${url}/ui/skills/demo`)
  const file = await open(`${url}/ui/skills/demo/files/a.txt`)
  passTick(join(root, '..'))
  writeFileSync(join(root, 'demo/SKILL.md'), skillText('demo', 'Second text.\n'))
  writeFileSync(join(root, 'demo/a.txt'), 'second')
  t.match((await open(`${url}/ui/skills/demo`)).text, /Second text/)
  t.match((await open(`${url}/ui/skills/demo/files/a.txt`)).text, />second\n/)
  t.match((await open(url)).text, /demo/)
  for (const [path, before] of [['', first], ['/files/a.txt', file]] as const) {
    t.equal((await open(
      `${url}/ui/skills/demo${path}`, { headers: { 'if-none-match': before.headers.get('etag') ?? '' } }
    )).status, 200)
  }
})

t.test('K77: a page holds the name of its state, by which its script asks whether it is still so', async (t) => {
  const { url, root } = await buildService(t, { files: { demo: skill('demo') } })
  for (const path of ['/', '/ui/skills/demo', '/ui/skills/demo/files/SKILL.md', '/ui/status']) {
    const page = await open(url + path)
    const [, state = ''] = /data-state="([\da-f]{64})"/.exec(page.text) ?? []
    t.match(page.headers.get('etag'), state)
    const ask = () => open(url + path, { method: 'HEAD', headers: { 'if-none-match': `"${state}"` } })
    t.equal((await ask()).status, 304, path)
    if (path === '/ui/status') continue
    passTick(join(root, '..'))
    writeFileSync(join(root, 'demo/SKILL.md'), skillText('demo', `Changed for ${path}.\n`)
      .replace('What', `What ${path}`))
    t.equal((await ask()).status, 200, path)
  }
})

t.test('K74: an error is a page for browsers and a problem for programs', async (t) => {
  const { url, folder } = await buildService(t, { files: null })
  const none = await open(url)
  t.match(none, { status: 503, text: /<h1>Skills folder not found[^]*No folder of skills is there/ })
  t.notMatch(none.text, folder, 'no path of the server')
  t.equal(none.headers.get('retry-after'), '5')
  t.equal(none.headers.get('cache-control'), 'no-store')
  t.notOk(none.headers.has('etag'), 'an error is never what a client has')
  for (const path of ['/ui/nope', '/ui/assets/catalog-0.css', '/ui/skills/nope']) {
    const page = await open(url + path)
    t.equal(page.status, path === '/ui/skills/nope' ? 503 : 404, path)
  }
  const problem = await open(`${url}/ui/nope`, { headers: { accept: '*/*' } })
  t.equal(problem.headers.get('content-type'), 'application/problem+json')
  t.equal((await open(`${url}/ui/skills/%ff`)).headers.get('content-type'), 'application/problem+json')
  t.match(await open(`${url}/ui/status`), { status: 200, text: /not ready[^]*missing/ })
  t.equal((await open(`${url}/ui`)).headers.get('location'), './')
  t.equal((await open(`${url}/ui?q=a?b`)).headers.get('location'), './?q=a?b', 'what was asked goes with it')
  t.equal((await open(`${url}/ui/`)).headers.get('location'), '../')
  t.equal((await open(`${url}/ui/status`, { method: 'POST' })).status, 405)
  t.equal((await open(`${url}/ui/nope`, { method: 'POST' })).status, 404)
})

t.test('K47: an address below /ui that is not there has a page that leads on', async (t) => {
  const { url } = await buildService(t, { files: {}, options: { basePath: '/team' } })
  const text = /<h1>Page not found[^]*No page has this address\.<\/p>\s*<p class="actions"><a href="\.\.\/">All skills</
  t.match(await open(`${url}/team/ui/statuz`), { status: 404, text })
})

t.test('K74: style, script and icon are immutable under names that change with them', async (t) => {
  const { url } = await buildService(t, { files: {} })
  const { links, text } = await open(url)
  const [, script = '', integrity = ''] = /<script src="([^"]*)" integrity="([^"]*)"/.exec(text) ?? []
  const assets = [...links.filter((link) => link.includes('/assets/')), script]
  t.equal(assets.length, 3)
  for (const asset of assets) {
    const {
      status, headers, text
    } = await open(new URL(asset, `${url}/`).href, { headers: { accept: '*/*', 'accept-encoding': 'gzip' } })
    t.equal(status, 200, asset)
    t.equal(headers.get('cache-control'), 'public, max-age=31536000, immutable')
    t.match(headers.get('content-type'), asset.endsWith('.css')
      ? 'text/css'
      : asset.endsWith('.js') ? 'application/javascript' : 'image/svg+xml')
    t.notMatch(text, /https?:\/\/(?!www\.w3\.org\/2000\/svg)/, 'nothing from another host')
  }
  t.match((await open(url)).headers.get('content-security-policy'), integrity)
})

t.test('K69: below a path prefix every link of every page leads below it', async (t) => {
  const base = '/team/skills'
  const { url } = await buildService(
    t, { files: { 'a b': skill('a b', { docs: { 'x.md': 'x' } }) }, options: { basePath: base } }
  )
  t.equal((await open(url + base)).headers.get('location'), 'skills/')
  t.equal((await open(`${url}${base}?q=a?b`)).headers.get('location'), 'skills/?q=a?b')
  for (const path of ['/ui', '/ui/', '/ui/skills', '/ui/skills/']) {
    const { status, headers } = await open(`${url}${base}${path}?q=a`)
    t.equal(status, 308, path)
    t.equal(new URL(headers.get('location') ?? '', url + base + path).href, `${url}${base}/?q=a`, path)
  }
  for (const path of [
    '/', '/?q=a', '/ui/skills/a%20b', '/ui/skills/a%20b/files/docs/x.md', '/ui/skills/a%20b/files/docs%2Fx.md',
    '/ui/status', '/ui/skills/none'
  ]) {
    const page = await open(url + base + path)
    for (const link of page.links.filter((href) => !href.startsWith('#'))) {
      const target = new URL(link, url + base + path)
      t.ok(target.pathname.startsWith(`${base}/`), `${path}: ${link}`)
      if (!target.pathname.endsWith('llms.txt')) t.not((await fetch(target)).status, 404, `${path}: ${link}`)
    }
  }
  t.match((await open(`${url}${base}/ui/skills/a%20b`)).text, `${base}/skills/a%20b`)
})

t.test('K74: UI=false leaves no trace of the pages', async (t) => {
  const { url } = await buildService(t, { files: { demo: skill('demo') }, options: { ui: false } })
  const root = await open(url)
  t.match(root.headers.get('content-type'), 'application/json')
  t.notMatch(root.headers.get('vary') ?? '', /Accept(?!-)/)
  for (const path of ['/ui', '/ui/status', '/ui/skills/demo']) {
    const { status, headers } = await open(url + path)
    t.equal(status, 404)
    t.equal(headers.get('content-type'), 'application/problem+json')
  }
  t.equal((await rawRequest(url, request('GET', '/ui/status'))).status, 404)
})

t.test('K74: a folder of a skill is a page, and each file has a way back', async (t) => {
  const { url } = await buildService(
    t, { files: { demo: skill('demo', { scripts: { lib: { 'a.py': 'x' }, 'run me.py': 'yy' } }) } }
  )
  const page = `${url}/ui/skills/demo`
  const { text, links } = await open(`${page}/files/scripts`)
  t.match(text, /<h1><bdi>scripts\/<\/bdi><\/h1>/)
  t.match(text, /lib\/<\/bdi><\/a> <span>1 file<\/span>/)
  t.ok(links.includes('../../../../ui/skills/demo/files/scripts/run%20me.py'))
  for (const address of [
    '/files', '/files/', '/files/scripts/', '/files/scripts/lib'
  ]) t.equal((await open(page + address)).status, 200, address)
  t.match(
    (await open(`${page}/files/scripts/lib`)).text, /<h1><bdi>lib\/<\/bdi><\/h1>/,
    'the folders around it are in the way back'
  )
  t.match((await open(`${page}/files`)).text, /scripts\/<[^]*SKILL\.md</)
  const { links: back } = await open(`${page}/files/scripts/lib/a.py`)
  for (const folder of [
    'scripts', 'scripts/lib'
  ]) t.ok(back.includes(`../../../../../../ui/skills/demo/files/${folder}`), folder)
  t.match(
    (await open(page)).text, /scripts\/<\/bdi><\/a>\s*<ul class="files">\s*<li><a[^>]*><bdi>run me\.py/,
    'the tree of the skill has what is in the folder'
  )
  t.equal((await open(`${page}/files/script`)).status, 404, 'a beginning of a name is no folder')
})

t.test('K74: where a skill or a file is not there, its page leads on', async (t) => {
  const { url } = await buildService(t, { files: { weather: skill('weather') } })
  t.match(await open(`${url}/ui/skills/wether`), { status: 404, text: /\?q=wether">Search for/ })
  t.match(await open(`${url}/ui/skills/weather/files/run.py`), {
    status: 404, text: /href="[^"]*\/weather\/files\/">All files/
  })
  t.notMatch((await open(`${url}/ui/skills/${encodeURIComponent('<img src=x>')}`)).text, '<img')
})

t.test('K77: what changed in a skill since a revision that somebody had: files, names, lines', async (t) => {
  const { url, root, fetch } = await buildService(t, {
    files: {
      demo: {
        'SKILL.md': skillText('demo', 'One.\n\nTwo <b>.\n'),
        'gone.txt': 'gone',
        'old.txt': 'moved',
        'data.bin': Buffer.from([0, 1]),
        sub: { 'z.md': 'z' }
      }
    }
  })
  const page = `${url}/ui/skills/demo`
  t.match((await open(`${page}/changes`)).text, /nothing has changed in it/)
  const { revision } = (await fetch('/catalog/demo')).json() as { readonly revision: string }
  passTick(join(root, '..'))
  writeFileSync(join(root, 'demo/SKILL.md'), skillText('demo', 'One.\n\nThree <i>.\n'))
  rmSync(join(root, 'demo/gone.txt'))
  mkdirSync(join(root, 'demo/new'))
  renameSync(join(root, 'demo/old.txt'), join(root, 'demo/new/name.txt'))
  writeFileSync(join(root, 'demo/data.bin'), Buffer.from([0, 2]))
  const now = await open(page)
  const present = ((await fetch('/catalog/demo')).json() as { readonly revision: string }).revision
  t.match(now.text, `data-changes="../../ui/skills/demo/changes?from=${encodeURIComponent(present)}"`)
  t.match(now.text, /changes">Earlier revisions/)
  for (const address of ['/changes', `/changes?from=${encodeURIComponent(revision)}`]) {
    const { status, text } = await open(page + address)
    t.equal(status, 200)
    t.match(text, /<del>-Two &lt;b&gt;\.\n<\/del><ins>\+Three &lt;i&gt;\.\n<\/ins>/)
    t.match(text, /SKILL\.md[^]*data\.bin[^]*Not compared here[^]*added<[^]*new\/name\.txt[^]*removed<[^]*gone\.txt[^]*old\.txt/)
    t.notMatch(text, 'z.md')
  }
  t.match((await open(`${page}/changes?from=sha256:${'0'.repeat(64)}`)).text, /is not kept any more/)
  t.equal((await open(`${page}/changes?from=nonsense`)).status, 200)
  t.equal((await open(`${url}/ui/skills/none/changes`)).status, 404)
})

t.test('K74: the status page says since when and why a source is not up to date', async (t) => {
  const status: SourceStatus[] = [
    {
      name: 'skills',
      kind: 'git',
      state: 'stale',
      skills: 1,
      revision: `main@sha1:${'0123456789'.repeat(4)}`,
      checked_at: '2026-11-22T10:00:00.000Z',
      failing_since: '2026-11-22T11:00:00.000Z',
      error: { code: 'unreachable', message: 'the host <does> not answer' }
    },
    { name: 'elsewhere', kind: 'oci', state: 'ok', skills: 9 }
  ]
  const { url } = await buildService(
    t, { files: { demo: skill('demo') }, options: { sources: { status, hooks: [], githubOf: () => undefined } } }
  )
  const { text } = await open(`${url}/ui/status`)
  t.match(
    text,
    /<td>git<[^]*not up to date<\/span><br>the host &lt;does&gt; not answer, since <time [^>]*>2026-11-22 11:00:00 UTC</
  )
  t.match(text, 'main@sha1:012345678901<')
  t.match(
    text,
    /<li>the source skills is not up to date, it fails since 2026-11-22 11:00:00 UTC: the host &lt;does&gt; not answer</
  )
  t.notMatch(text, 'elsewhere', 'a source of no root that the caller sees')
})

t.test('K74: the status page says which file of the operator cannot be used', async (t) => {
  const token = newSecret('ci', 'groups: [team]')
  const access = `tokens:\n  - ${token.entry}\nrules:\n  - { groups: [team], roots: [skills] }\n`
  const service = await buildGuarded(t, { roots: { skills: { demo: skill('demo') } }, access })
  const headers = { authorization: `Bearer ${token.text}` }
  const status = async () => (await open(`${service.url}/ui/status`, { headers })).text
  t.match(await status(), /verdict good">ready<\/span> – 1 skill\.<\/p>\s*<section/)
  await service.breakAccess(`${access}nonsense: [`)
  t.match(await (await service.get('/readyz', token.text)).json(), {
    status: 'ready', detail: /^the access file cannot be used as it is/
  })
  const broken = await status()
  t.match(
    broken,
    /ready<\/span>[^]*<li>the access file cannot be used as it is, so the last good one stays in force; the log/
  )
  t.notMatch(broken, /nonsense|access\.yaml/, 'the reason may quote the file')
  await service.setAccess(`${access}# mended\n`)
  t.notMatch(await status(), 'cannot be used')
})

t.test('K74: the page of a skill says who signed it, and what does not hold', async (t) => {
  const reports: Readonly<Record<string, Partial<TrustReport>>> = {
    signed: { signed: true, status: 'valid', signer: 'Ada <b>', pinned: true },
    plain: { status: 'unsigned', pinned: false },
    stale: { signed: true, status: 'stale' },
    expired: { signed: true, status: 'expired', signer: 'Ada' },
    foreign: { signed: true, status: 'untrusted' },
    refused: { status: 'invalid' }
  }
  const events = new EventEmitter()
  const policy: RootPolicy = {
    on: events.on.bind(events) as RootPolicy['on'],
    guards: () => true,
    allows: () => true,
    async check (_root, state) {
      const { skill_name: name, revision, files } = await state.manifest()
      const report = { signed: false, status: null, signer: null, pinned: null, checked_revision: revision }
      const findings = name === 'stale'
        ? [finding('signature_stale', "files differ from what was signed: 'run.sh'", 'Sign the skill again')]
        : []
      return { isServed: name !== 'refused', report: { ...report, ...reports[name] }, findings, files, revision }
    }
  }
  const { url } = await buildService(
    t, { files: Object.fromEntries(Object.keys(reports).map((name) => [name, skill(name)])), options: { policy } }
  )
  const page = async (name: string) => (await open(`${url}/ui/skills/${name}`)).text
  t.match(
    await page('signed'),
    /<dt>Origin<[^]*"verdict good">signed<\/span> by <bdi>Ada &lt;b&gt;<\/bdi><\/li>\s*<li>this revision is locked</
  )
  t.match(
    await page('plain'),
    /<span class="verdict warning">not signed<\/span><\/li>\s*<li><span class="verdict warning">not in the lock</
  )
  t.match(await page('stale'), /changed since it was signed<[^]*Files differ from what was signed: &#39;run\.sh&#39;/)
  t.match(await page('expired'), /signed with a certificate that has expired<\/span> by <bdi>Ada</)
  t.match(await page('foreign'), /signed by somebody unknown</)
  t.match(await open(`${url}/ui/skills/refused`), { status: 404, text: /<h1>Skill not found/ })
  t.notMatch((await open(url)).text, /refused/)
  t.notMatch((await open(`${url}/ui/skills/refuse`)).text, 'refused', 'nor as what may have been meant')
  t.notMatch(
    (await open(`${url}/ui/status`)).text, 'refused', 'a page counts them; the log and skillserve verify name them'
  )
  t.match((await open(`${url}/ui/status`)).text, /,\s1 folder kept back by the lock or the trust file\./)
})

t.test('K76: snippets, the prompt and llms.txt have the address of PUBLIC_URL where it is set', async (t) => {
  const { url } = await buildService(
    t, { files: { demo: skill('demo') }, options: { publicUrl: 'https://skills.example.com/team', basePath: '/inner' } }
  )
  for (const path of ['/inner/', '/inner/ui/skills/demo']) {
    const { text } = await open(url + path)
    t.match(text, 'claude mcp add --transport http skills https://skills.example.com/team/mcp')
    t.match(text, 'data-base="https://skills.example.com/team"')
  }
  for (const path of ['/agent/prompt', '/agent/prompt?format=json', '/agent/prompt?format=markdown', '/llms.txt']) {
    const { text } = await open(`${url}/inner${path}`, { headers: { accept: '*/*' } })
    t.match(text, 'https://skills.example.com/team/skills/demo/files/SKILL.md', path)
    t.notMatch(text, '/inner', path)
  }
})

t.test('K64: pages show the view of the caller, and tell whoever may not what to do', async (t) => {
  const token = newSecret('ci', 'groups: [team]')
  const scraper = newSecret('prometheus', 'scopes: ["metrics:read"]')
  const service = await buildGuarded(t, {
    roots: { open: { weather: skill('weather') }, closed: { 'weather-secret': skill('weather-secret') } },
    access: `tokens:\n  - ${token.entry}\n  - ${scraper.entry}\nrules:\n  - { groups: [anonymous], roots: [open] }\n ` +
      ' - { groups: [team], roots: [closed] }\n'
  })
  const { url } = service
  const headers = { authorization: `Bearer ${token.text}` }
  t.strictSame(listedNames((await open(url)).text), ['weather'])
  t.strictSame(listedNames((await open(url, { headers })).text), ['weather', 'weather-secret'])
  t.notMatch((await open(url)).text, 'closed', 'nor the names of other folders')
  t.strictSame(listedNames((await open(`${url}/?root=closed`)).text), [])
  for (const path of [
    '/ui/skills/weather-secret', '/ui/skills/weather-secre', '/ui/skills/weather-secret/changes',
    '/ui/skills/weather-secret/files', '/ui/status'
  ]) {
    const { status, text, headers } = await open(url + path)
    t.equal(status, 401, path)
    t.match(text, /<h1>Not authenticated<\/h1>[^]*through the proxy of your organization[^]*Authorization: Bearer/)
    t.equal(text.match(/Authorization: Bearer/g)?.length, 1, 'what to do is said once')
    t.match(headers.get('www-authenticate'), 'Bearer')
  }
  t.equal((await open(`${url}/ui/skills/weather-secre`, { headers })).status, 404)
  t.equal((await open(`${url}/ui/status`, { headers })).status, 200)
  const scraped = await open(url, { headers: { authorization: `Bearer ${scraper.text}` } })
  t.match(scraped, { status: 403, text: /needs the scope skills:read; ask for a token with that scope\./ })
  t.strictSame(scraped.links.filter((link) =>
    !link.includes('/assets/')), ['#main'], 'no page that this caller may not read either')
  const { text: refused } = await open(url, { headers: { authorization: 'Bearer wrong' } })
  t.match(refused, /<h1>Invalid token<\/h1>[^]*ask the operator of the service for another\./)
  t.notMatch(refused, 'Authorization: Bearer', 'a token was sent')

  await service.setAccess(`tokens:\n  - ${token.entry}\nrules:\n  - { groups: [team], roots: [open, closed] }\n`)
  for (const path of ['/', '/ui/status', '/ui/skills/weather']) {
    const {
      status, text, links
    } = await open(url + path, path === '/' ? { headers: { authorization: 'Bearer wrong' } } : {})
    t.equal(status, 401, path)
    t.match(text, /<h1>/)
    const style = links.find((link) => link.endsWith('.css')) ?? ''
    t.equal((await open(new URL(style, url + path).href)).status, 200, 'the page has its style')
    t.match(await open(url + path, { headers: { accept: 'application/json' } }), {
      status: 401, text: /"code":"unauthenticated"/
    })
  }
})

/** One character more than the format allows; uploads to OpenAI take it. */
const LONG = 'x'.repeat(1_025)

t.test('K74: a list is refined by validity, severity, folder and client, and each has an address', async (t) => {
  const { url } = await buildService(t, {
    files: {
      good: skill('good'),
      broken: { 'SKILL.md': 'no frontmatter' },
      hidden: { 'SKILL.md': '---\nname: hidden\ndescription: Some text\n---\na\u200bb\n' }
    },
    options: {
      roots: ['skills', 'more'],
      siblings: {
        more: { other: skill('other'), long: { 'SKILL.md': `---\nname: long\ndescription: ${LONG}\n---\nText.\n` } }
      }
    }
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
  t.match(
    (await open(`${url}/?q=zzz&root=more`)).text,
    /href="\.\/\?q=zzz">Search among all skills<\/a> <a href="\.\/">Show all/
  )
})

t.test('K74: a choice that reads entries reads a bounded number for a page, and goes on from there', async (t) => {
  const files = Object.fromEntries(Array.from({ length: 520 }, (_, index) => [
    `s${index}`, { 'SKILL.md': `---\nname: s${index}\ndescription: d\n---\n${index % 250 === 0 ? 'a\u200bb' : 'x'}\n` }
  ]))
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
      'pdf-forms': {
        'SKILL.md': '---\nname: pdf-forms\ndescription: Fills <b>PDF</b> forms, \u200band extracts ' +
        'text. Extracting is fast\n---\nx\n'
      },
      技能: { 'SKILL.md': '---\nname: 技能\ndescription: 天气预报\n---\nx\n' }
    }
  })
  const { text } = await open(`${url}/?q=pdf+extract`)
  t.match(text, '<bdi><mark>pdf</mark>-forms</bdi>')
  t.match(
    text,
    /<mark>PDF<\/mark>&lt;\/b&gt; forms, [^]*>U\+200B<[^]*and <mark>extracts<\/mark> text\. <mark>Extracting</
  )
  t.match((await open(`${url}/?q=extracted`)).text, /and <mark>extracts<\/mark> text\. <mark>Extracting</)
  t.match((await open(`${url}/?q=${encodeURIComponent('天气')}`)).text, '<mark>天气预报</mark>')
})

t.test('K75: a body of 50,000 marks of quotation, and one of 1 MiB, are plain text with the reason', async (t) => {
  const head = skillText('large', '')
  const { url } = await buildService(t, {
    files: {
      quotes: skill('quotes', { 'SKILL.md': skillText('quotes', '>'.repeat(50_000)) }),
      large: skill('large', { 'SKILL.md': head + 'A plain text.\n'.repeat((MAX_MAIN_FILE_BYTES - head.length) / 14) })
    }
  })
  t.match(await open(`${url}/ui/skills/quotes`), {
    status: 200,
    text: /Shown as plain text: its quotations or lists are nested too deeply to be rendered\.[^]*&gt;&gt;&gt;/
  })
  const { status, text } = await open(`${url}/ui/skills/large`)
  t.equal(status, 200)
  t.match(text, /Shown as plain text: it is too large to be rendered\. This is its beginning\./)
})

t.test('K74: a page is the same on every replica, whatever each has seen before', async (t) => {
  const files = { demo: skill('demo', { docs: { 'a.md': '# A' }, 'a.txt': 'x' }) }
  const first = await buildService(t, { files })
  // It has been asked for a revision that the skill has no more.
  await first.fetch('/catalog/demo')
  await t.test('the second one', async (t) => {
    const second = await buildService(t, { files })
    passTick(first.folder)
    for (const { root } of [
      first, second
    ]) writeFileSync(join(root, 'demo/SKILL.md'), skillText('demo', 'A new text.\n'))
    const { host } = new URL(first.url)
    for (const path of [
      '/', '/ui/skills/demo', '/ui/skills/demo/files/SKILL.md?view=rendered', '/ui/skills/demo/files/a.txt'
    ]) {
      const [a, b] = [await open(first.url + path), await open(second.url + path)]
      t.equal(b.text.replaceAll(new URL(second.url).host, host)
        .replace(/data-state="\w+"/, ''), a.text.replace(/data-state="\w+"/, ''), path)
      t.equal((await open(first.url + path, { headers: { 'if-none-match': a.headers.get('etag') ?? '' } })).status, 304)
    }
  })
})

t.test('K74: tabs and the status page count skills with errors, and links that were left out', async (t) => {
  const { url } = await buildService(t, {
    files: {
      good: skill('good'),
      fine: { 'SKILL.md': skillText('fine', '[a](missing.md)') },
      broken: { 'SKILL.md': 'no frontmatter' },
      away: t.fixture('symlink', '../elsewhere')
    },
    options: { siblings: { elsewhere: skill('elsewhere') } }
  })
  const counts = async (query: string) => {
    const { text } = await open(`${url}/${query}`)
    return Array.from(text.matchAll(
      />(All|Valid|Warnings|Errors)(?: <span class="count-of">([\d,]+)<\/span>)?<\/a>/g
    ), ([, ...parts]) => parts.join(' ').trim())
  }
  t.strictSame(await counts(''), ['All 3', 'Valid 2', 'Warnings 1', 'Errors 1'])
  t.strictSame(await counts('?target=spec'), ['All 3', 'Valid 2', 'Warnings 1', 'Errors 1'])
  t.strictSame(await counts('?q=good&valid=false'), ['All 1', 'Valid 1', 'Warnings 0', 'Errors 0'])
  t.strictSame(await counts('?root=nobody'), ['All 0', 'Valid 0', 'Warnings 0', 'Errors 0'])
  const { text } = await open(`${url}/ui/status`)
  t.match(
    text,
    /ready<\/span> – 3 skills,\s*<a href="\.\.\/\?valid=false">1 with errors<\/a>,\s*1 entry left out: the log/
  )
})
