import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { buildService } from '../../helper/build.ts'
import { listedNames, type OpenedPage, openPage as open } from '../../helper/pages.ts'
import { rawRequest, request } from '../../helper/raw-http.ts'
import { passTick, skill, skillText } from '../../helper/skills.ts'

t.test('K74: / is the list of skills for browsers, and the list of doors for programs', async (t) => {
  const { url } = await buildService(t, { files: { one: skill('one'), broken: { 'SKILL.md': 'no frontmatter' } } })
  const page = await open(url)
  t.equal(page.status, 200)
  t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  t.match(page.headers.get('vary'), /Accept/)
  t.match(page.text, /<h2><a href="\.\/ui\/skills\/one"><bdi>one<\/bdi><\/a><\/h2>\s*<p class="description" dir="auto">What one is for/)
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
  const files = Object.fromEntries(Array.from({ length: 120 }, (_, index) => [`skill-${String(index).padStart(3, '0')}`, skill(`skill-${String(index).padStart(3, '0')}`)]))
  const { url } = await buildService(t, { files: { ...files, weather: skill('weather'), broken: { 'SKILL.md': 'no frontmatter' } } })

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

  t.match((await open(`${url}/?q=nothing-like-it`)).text, /No skill fits[^]*A skill comes here as a folder with a <code>SKILL\.md<\/code>/)
  t.match(await open(`${url}/?cursor=x`), { status: 400, text: /<h1>/ })
  t.match(await open(`${url}/?q=${'x'.repeat(1_001)}`), { status: 400 })
  t.equal((await open(`${url}/?q=a&q=b&utm=1`)).status, 200)
})

t.test('K74: the page of a skill says what it is for, whether it is all right, how to use it, and what is in it', async (t) => {
  const { url } = await buildService(t, {
    files: { demo: { 'SKILL.md': skillText('demo', '# Steps\n\nRead [more](docs/more.md).\n').replace('---\n#', 'license: MIT\nmetadata:\n  owner: "<b>"\n---\n#'), docs: { 'more.md': '# More' }, 'a.bin': Buffer.from([0, 1]) } }
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
  t.match(headers.get('content-security-policy'), /^default-src 'none'; script-src 'sha256-[\w+/=]+'; .*require-trusted-types-for 'script'/)
  t.match(Object.fromEntries(headers), { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer', 'x-robots-tag': 'noindex', 'cache-control': 'no-cache' })
})

t.test('K74: a page shows each finding with its fix, and offers no client what it would not get', async (t) => {
  const { url } = await buildService(t, { files: { Broken: { 'SKILL.md': '---\nname: other\n---\nx\u200b' }, bare: {} } })
  const { text } = await open(`${url}/ui/skills/Broken`)
  const { findings } = await (await fetch(`${url}/catalog/Broken`)).json() as { readonly findings: ReadonlyArray<{ readonly code: string }> }
  t.ok(findings.length > 2)
  for (const { code } of findings) t.match(text, `<code>${code}</code>`)
  t.match(text, /<span class="label">Fix<\/span>/)
  t.match(text, /<td>Agent Skills format<\/td><td><span class="verdict error">refuses it<\/span><\/td><td><a href="#\w+">/)
  for (const [, code = ''] of text.matchAll(/<a href="#(\w+)"><code>/g)) t.match(text, ` id="${code}">`, 'each reason leads to its finding')
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
  t.match((await file('notes.md')).text, /href="\.\.\/\.\.\/\.\.\/\.\.\/ui\/skills\/demo\/files\/notes\.md\?view=rendered">Rendered/)
  t.match((await file('notes.md?view=rendered')).text, /<h2 id="user-content-notes">/)
  t.match((await file('b.bin')).text, /3 bytes<\/span> <span>application\/octet-stream<\/span> <code title="sha256:[\da-f]{64}">[^]*not text[^]*href="\.\.\/\.\.\/\.\.\/\.\.\/skills\/demo\/files\/b\.bin" download/)
  t.match((await file('latin.txt')).text, /latin-1[^]*café/)
  const empty = (await file('empty.txt')).text
  t.match(empty, /The file is empty/)
  t.notMatch(empty, '1 line')
  t.match((await file('logo.svg')).text, /<img src="[^"]*\/skills\/demo\/files\/logo\.svg" alt="logo\.svg">[^]*&lt;svg/)
  const large = (await file('large.txt')).text
  t.ok(large.length < 600_000, `${large.length} characters`)
  t.match(large, /1\.0 MB[^]*This is the beginning\. <a href="[^"]*">The whole file/)
  t.ok((await file('lines.txt')).text.length < 1_500_000)
  t.match(await file('gone.txt'), { status: 404, text: /File &#39;gone\.txt&#39; not found in skill/ })
  t.match(await file('docs/%2e%2e%2f%2e%2e%2fx'), { status: 403, text: /Path traversal detected[^<]*\. Name a file relative to the skill, without leaving it\./ })
})

t.test('K75: of a Markdown file that is too large to be rendered, the rendered page shows the beginning as plain text, and says both', async (t) => {
  const { url, fetch } = await buildService(t, { files: { demo: skill('demo', { 'guide.md': `# Guide\n\n${'some *text* '.repeat(100)}\n`.repeat(1_300) }) } })
  const address = `${url}/ui/skills/demo/files/guide.md?view=rendered`
  const expected = /<p class="note">Shown as plain text: it is too large to be rendered\. This is its beginning\.<\/p>\s*<pre class="source">[^]*\*text\*/
  t.match((await open(address)).text, expected)
  t.equal((await fetch('/skills/demo/files')).status, 200, 'now its digest is known')
  const { text } = await open(address)
  t.match(text, expected)
  t.match(text, /guide\.md">Source</)
})

t.test('K20: the page of a large file in UTF-16 shows its beginning, as the JSON form shows all of it', async (t) => {
  const utf16le = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')
  const text = 'first line, ünï ✓\n'.repeat(60_000)
  const { url } = await buildService(t, {
    files: { demo: skill('demo', { 'le.txt': utf16le(text), 'be.txt': utf16le(text).swap16(), 'pairs-le.txt': utf16le('😀'.repeat(600_000)), 'pairs-be.txt': utf16le('😀'.repeat(600_000)).swap16() }) }
  })
  for (const [path, encoding, expected] of [
    ['le.txt', 'utf-16le', /This is the beginning\.[^]*id="L7000"[^>]*>7000<\/a>first line, ünï ✓\n/],
    ['be.txt', 'utf-16be', /This is the beginning\.[^]*id="L7000"[^>]*>7000<\/a>first line, ünï ✓\n/],
    ['pairs-le.txt', 'utf-16le', /This is the beginning\.[^]*(?:😀){1000}\n<\/span>/u],
    ['pairs-be.txt', 'utf-16be', /This is the beginning\.[^]*(?:😀){1000}\n<\/span>/u]
  ] as const) {
    const page = await open(`${url}/ui/skills/demo/files/${path}`)
    t.ok(page.text.includes(`<span>${encoding}</span>`), path)
    t.ok(expected.test(page.text), path)
  }
})

t.test('K74: names of any characters work on every page, and no text of a skill becomes markup', async (t) => {
  const names = ['a b?c#d%', '技能', '<img src=x>', '"quoted\'', 'x&amp;y', '%2e%2e', ';', 'ünï']
  const hostile = '---\nname: "<script>alert(1)</script>"\ndescription: "</p><script>alert(1)</script>"\n"<b>key</b>": ["<i>", {"<u>": null}]\n---\n<script>alert(1)</script>'
  const { url } = await buildService(t, { files: Object.fromEntries(names.map((name) => [name, { 'SKILL.md': hostile, [name]: { 'f <g>.txt': 'text' } }])) })
  const list = await open(url)
  const isClean = (text: string) => t.notMatch(text.replace(/<script src="[^"]*" integrity="[^"]*" defer><\/script>/, ''), /<(?:script|b>|i>|u>|img)/)
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
    t.equal((await open(`${url}/ui/skills/demo${path}`, { headers: { 'if-none-match': before.headers.get('etag') ?? '' } })).status, 200)
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
    writeFileSync(join(root, 'demo/SKILL.md'), skillText('demo', `Changed for ${path}.\n`).replace('What', `What ${path}`))
    t.equal((await ask()).status, 200, path)
  }
})

t.test('K74: an error is a page for browsers and a problem for programs', async (t) => {
  const { url, folder } = await buildService(t, { files: null })
  const none = await open(url)
  t.match(none, { status: 503, text: /<h1>Skills folder not found[^]*No folder of skills is there, or its source is not fetched yet/ })
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
  for (const path of ['/ui/skills/%ff', '/ui/%']) {
    const page = await open(url + path)
    t.match(page, { status: 400, text: '<h1>Bad URL' }, path)
    t.match(page.headers.get('content-security-policy'), "script-src 'sha256-")
    t.equal((await open(url + path, { headers: { accept: '*/*' } })).headers.get('content-type'), 'application/problem+json', path)
  }
  t.equal((await open(`${url}/skills/%ff`)).headers.get('content-type'), 'application/problem+json')
  t.match(await open(`${url}/ui/status`), { status: 200, text: /not ready[^]*missing/ })
  t.equal((await open(`${url}/ui`)).headers.get('location'), './')
  t.equal((await open(`${url}/ui?q=a?b`)).headers.get('location'), './?q=a?b', 'what was asked goes with it')
  t.equal((await open(`${url}/ui/`)).headers.get('location'), '../')
  t.equal((await open(`${url}/ui/status`, { method: 'POST' })).status, 405)
  t.equal((await open(`${url}/ui/nope`, { method: 'POST' })).status, 404)
})

t.test('K47: the page for an address below /ui that is not there leads to the one that was meant', async (t) => {
  const { url } = await buildService(t, { files: {}, options: { basePath: '/team' } })
  for (const [path, text] of [
    ['/ui/statuz', '<h1>Page not found[^]*No page has this address\\.[^]*Did you mean <a href="\\.\\./ui/status"><bdi>/ui/status<'],
    ['/ui/skill/a%20b/', 'Did you mean <a href="\\.\\./\\.\\./\\.\\./ui/skills/a%20b"><bdi>/ui/skills/a%20b<'],
    ['/ui/nope', 'No page has this address\\.</p>\\s*<p class="actions">']
  ] as const) t.match(await open(`${url}/team${path}`), { status: 404, text: new RegExp(text) }, path)
})

t.test('K74: style, script and icon are immutable under names that change with them', async (t) => {
  const { url } = await buildService(t, { files: {} })
  const { links, text } = await open(url)
  const [, script = '', integrity = ''] = /<script src="([^"]*)" integrity="([^"]*)"/.exec(text) ?? []
  const assets = [...links.filter((link) => link.includes('/assets/')), script]
  t.equal(assets.length, 3)
  for (const asset of assets) {
    const { status, headers, text } = await open(new URL(asset, `${url}/`).href, { headers: { accept: '*/*', 'accept-encoding': 'gzip' } })
    t.equal(status, 200, asset)
    t.equal(headers.get('cache-control'), 'public, max-age=31536000, immutable')
    t.match(headers.get('content-type'), asset.endsWith('.css') ? 'text/css' : asset.endsWith('.js') ? 'text/javascript' : 'image/svg+xml')
    t.notMatch(text, /https?:\/\/(?!www\.w3\.org\/2000\/svg)/, 'nothing from another host')
  }
  t.match((await open(url)).headers.get('content-security-policy'), integrity)
})

t.test('K69: below a path prefix every link of every page leads below it', async (t) => {
  const base = '/team/skills'
  const { url } = await buildService(t, { files: { 'a b': skill('a b', { docs: { 'x.md': 'x' } }) }, options: { basePath: base } })
  t.equal((await open(url + base)).headers.get('location'), 'skills/')
  t.equal((await open(`${url}${base}?q=a?b`)).headers.get('location'), 'skills/?q=a?b')
  for (const path of ['/ui', '/ui/', '/ui/skills', '/ui/skills/']) {
    const { status, headers } = await open(`${url}${base}${path}?q=a`)
    t.equal(status, 308, path)
    t.equal(new URL(headers.get('location') ?? '', url + base + path).href, `${url}${base}/?q=a`, path)
  }
  for (const path of ['/', '/?q=a', '/ui/skills/a%20b', '/ui/skills/a%20b/files/docs/x.md', '/ui/skills/a%20b/files/docs%2Fx.md', '/ui/status', '/ui/skills/none']) {
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
