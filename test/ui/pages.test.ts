import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { SkillState } from '../../src/core/revisions/state.ts'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
import type { SourceStatus } from '../../src/schemas/health.ts'
import type { SignatureResult } from '../../src/trust/check-signature.ts'
import { createSigner } from '../../src/trust/signers.ts'
import { TrustPolicy } from '../../src/trust/trust-policy.ts'
import { buildService } from '../helper/build.ts'
import { buildGuarded, newSecret } from '../helper/guarded.ts'
import { listedNames, type OpenedPage, openPage as open } from '../helper/pages.ts'
import { passTick, skill, skills, skillText } from '../helper/skills.ts'

/** What lies in the skills of the tests that change nothing. */
const FILES = {
  demo: {
    'SKILL.md': skillText('demo', '# Steps\n\nRead [more](docs/more.md).\n')
      .replace('---\n#', 'license: MIT\nmetadata:\n  owner: "<b>"\n---\n#'),
    docs: { 'more.md': '# More' },
    'a.bin': Buffer.from([0, 1])
  },
  Broken: { 'SKILL.md': '---\nname: other\n---\nx\u200b' },
  bare: {},
  files: skill('files', {
    'a.py': 'one\n<two>\n',
    'notes.md': '---\nx: 1\n---\n# Notes',
    'b.bin': Buffer.from([0, 1, 2]),
    'latin.txt': Buffer.from('caf\xe9', 'latin1'),
    'empty.txt': '',
    'large.txt': 'x'.repeat(99).concat('\n').repeat(10_000),
    'logo.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
    'lines.txt': '\n'.repeat(30_000),
    'guide.md': `# Guide\n\n${'some *text* '.repeat(100)}\n`.repeat(1_300)
  }),
  'pdf-forms': {
    'SKILL.md': skillText('pdf-forms')
      .replace(/What .*/, 'Fills <b>PDF</b> forms, \u200band extracts text. Extracting is fast')
  },
  技能: { 'SKILL.md': '---\nname: 技能\ndescription: 天气预报\n---\nx\n' },
  folders: skill('folders', { scripts: { lib: { 'a.py': 'x' }, 'run me.py': 'yy' } }),
  quotes: { 'SKILL.md': skillText('quotes', '>'.repeat(50_000)) },
  large: { 'SKILL.md': skillText('large', 'A plain text.\n'.repeat(MAX_MAIN_FILE_BYTES / 14 - 5)) }
}

const { url: shared } = await buildService(t, { files: FILES })

t.test('K74: / is the list of skills for browsers, and that of routes for programs; searches ' +
  'have addresses', async (t) => {
  const files = Object.fromEntries(Array.from({ length: 520 }, (_, index) => [
    `s${index}`, { 'SKILL.md': `---\nname: s${index}\ndescription: d\n---\n${index % 250 === 0 ? 'a\u200bb' : 'x'}\n` }
  ]))
  const { url } = await buildService(t, { files: { ...files, broken: { 'SKILL.md': 'no frontmatter' } } })
  const page = await open(url)
  t.equal(page.status, 200)
  t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  t.match(page.headers.get('vary'), /Accept/)
  t.match(page.text,
    /<h2><a href="\.\/ui\/skills\/s0"><bdi>s0<\/bdi><\/a><\/h2>\s*<p class="description" dir="auto">d</)
  t.match(page.text, /521 skills/)
  t.match(page.text, /<bdi>broken<\/bdi>[^]*1 error/, 'a skill with errors is there')
  for (const accept of ['*/*', 'application/json']) {
    const routes = await open(url, { headers: { accept } })
    t.match(routes.headers.get('content-type'), 'application/json')
    t.match(routes.headers.get('vary'), /Accept/)
    t.match(JSON.parse(routes.text), { name: 'skillserve' })
  }
  const found = await open(`${url}/?q=s17`)
  t.strictSame(listedNames(found.text).slice(0, 1), ['s17'])
  t.match(found.text, /value="s17"/)
  t.match(found.text, /skills for “s17”/)
  t.match((await open(`${url}/?q=nothing-like-it`)).text, /No matching skills[^]*Show all skills/)
  t.match(await open(`${url}/?cursor=x`), { status: 400, text: /<h1>/ })
  t.match(await open(`${url}/?q=${'x'.repeat(1_001)}`), { status: 400 })
  t.equal((await open(`${url}/?q=a&q=b&utm=1`)).status, 200)

  const readAll = async (first: string) => {
    const names: string[] = []
    const lines: string[] = []
    for (let next: string | undefined = first; next !== undefined;) {
      const page: OpenedPage = await open(new URL(next, url).href)
      names.push(...listedNames(page.text))
      lines.push(/id="count"[^>]*>([^<]*)/.exec(page.text)?.[1] ?? '')
      next = page.links.find((link) => link.includes('cursor='))
    }
    return { names, lines }
  }
  const { names } = await readAll('/')
  t.strictSame([names.length, new Set(names).size], [521, 521])
  // A choice that reads entries reads a bounded number for a page.
  const warned = await readAll('/?severity=warning')
  t.strictSame(warned.names, ['s0', 's250', 's500'])
  t.match(warned.lines,
    [/ skills? with warnings among the first 500 of 521/, / on this page, which ends at 521 of 521/])
})

t.test('K74: the page of a skill says what it is for, how it is, how to use it, and what is in it', async (t) => {
  const { status, text, headers } = await open(`${shared}/ui/skills/demo`)
  t.equal(status, 200)
  t.match(text, /<h1><bdi>demo<\/bdi><\/h1>\s*<p class="lead" dir="auto">What demo is for/)
  t.match(text, /verdict good">valid/)
  t.match(text, /<dt>license<\/dt><dd><span dir="auto">MIT/)
  t.match(text, /<dt>owner<\/dt><dd><span dir="auto">&lt;b&gt;/)
  t.match(text, /<h3 id="user-content-steps">/)
  t.match(text, /href="\.\.\/\.\.\/ui\/skills\/demo\/files\/docs\/more\.md\?view=rendered"/)
  t.match(text, /npx skills add http:\/\/127\.0\.0\.1:\d+ --skill demo/)
  for (const file of ['SKILL.md', 'docs/more.md', 'a.bin']) t.match(text, `href="../../ui/skills/demo/files/${file}"`)
  const { revision } = await (await fetch(`${shared}/catalog/demo`)).json() as { readonly revision: string }
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
  const { text } = await open(`${shared}/ui/skills/Broken`)
  const { findings } = await (await fetch(`${shared}/catalog/Broken`)).json() as {
    readonly findings: ReadonlyArray<{ readonly code: string }>
  }
  t.ok(findings.length > 2)
  for (const { code } of findings) t.match(text, `<code>${code}</code>`)
  t.match(text, /<span class="label">Fix<\/span>/)
  t.match(text,
    /<td>Agent Skills format<\/td><td><span class="verdict error">refuses it<\/span><\/td><td><a href="#\w+">/)
  for (const [, code = ''] of text.matchAll(/<a href="#(\w+)"><code>/g)) {
    t.match(text, ` id="${code}">`, 'each reason leads to its finding')
  }
  t.match(text, /files\/SKILL\.md#L\d+">\s*line \d+<\/a>/)
  t.match(text, /matters to \d+ clients/)
  t.notMatch(text, /npx skills add/)
  t.match(text, /MCP does not list the skill/)
  t.match(text, /curl -s/)
  t.match(text, 'U+200B')
  const { text: bare } = await open(`${shared}/ui/skills/bare`)
  t.match(bare, /SKILL\.md not found for skill &#39;bare&#39;\./)
  t.match(bare, /<p class="nothing">SKILL\.md cannot be read: see the findings\.<\/p>/)
  t.notMatch(bare, 'Accept: text/markdown', 'K76: curl would get an error')
  t.match(bare, 'bare/archive.zip')
  t.match(bare, /<p class="nothing">The skill has no files\.<\/p>/)
})

t.test('K74: a file has an address for each line, is rendered on request, or can be downloaded', async (t) => {
  const file = (path: string) => open(`${shared}/ui/skills/files/files/${path}`)
  const source = (await file('a.py')).text
  t.match(source, '<span class="line"><a id="L2" href="#L2" tabindex="-1">2</a>&lt;two&gt;\n</span>')
  t.notMatch(source, 'id="L3"')
  t.match(
    (await file('notes.md')).text,
    /href="\.\.\/\.\.\/\.\.\/\.\.\/ui\/skills\/files\/files\/notes\.md\?view=rendered">Rendered/
  )
  t.match((await file('notes.md?view=rendered')).text, /<h2 id="user-content-notes">/)
  t.match(
    (await file('b.bin')).text,
    /3 bytes<[^]*octet-stream<[^]*sha256:[\da-f]{64}">[^]*not text[^]*skills\/files\/files\/b\.bin" download/
  )
  t.match((await file('latin.txt')).text, /latin-1[^]*café/)
  const empty = (await file('empty.txt')).text
  t.match(empty, /The file is empty/)
  t.notMatch(empty, '1 line')
  t.match((await file('logo.svg')).text,
    /<img src="[^"]*\/skills\/files\/files\/logo\.svg" alt="logo\.svg">[^]*&lt;svg/)
  const large = (await file('large.txt')).text
  t.ok(large.length < 600_000, `${large.length} characters`)
  t.match(large, /1\.0 MB[^]*This is the beginning\.\s<a href="[^"]*">The whole file/)
  t.ok((await file('lines.txt')).text.length < 1_500_000)
  t.match(await file('gone.txt'), { status: 404, text: /File &#39;gone\.txt&#39; not found in skill/ })
  t.match(await file('docs/%2e%2e%2f%2e%2e%2fx'), {
    status: 403, text: /Path traversal detected[^<]*\. Name a file relative to the skill, without leaving it\./
  })
})

t.test('K75: what is too large or too deeply nested to be rendered is plain text, with the reason', async (t) => {
  const large = /Shown as plain text: it is too large to be rendered\. This is its beginning\.<\/p>\s*<pre/
  const deep = /Shown as plain text: its quotations or lists are nested too deeply to be rendered\.[^]*&gt;&gt;&gt;/
  t.match(await open(`${shared}/ui/skills/quotes`), { status: 200, text: deep })
  t.match(await open(`${shared}/ui/skills/large`), { status: 200, text: large })
  const { text } = await open(`${shared}/ui/skills/files/files/guide.md?view=rendered`)
  t.match(text, large)
  t.match(text, '*text*')
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

t.test('K74 K77: an edit is on the page that is loaded next, and changes the state that its ' +
  'script asks for', async (t) => {
  const { url, root, folder } = await buildService(t, { files: { demo: skill('demo', { 'a.txt': 'first' }) } })
  for (const path of ['/', '/ui/skills/demo', '/ui/skills/demo/files/a.txt', '/ui/status']) {
    const page = await open(url + path)
    const [, state = ''] = /data-state="([\da-f]{64})"/.exec(page.text) ?? []
    t.match(page.headers.get('etag'), state)
    const ask = () => open(url + path, { method: 'HEAD', headers: { 'if-none-match': `"${state}"` } })
    t.equal((await ask()).status, 304, path)
    if (path === '/ui/status') continue
    passTick(folder)
    writeFileSync(join(root, 'demo/SKILL.md'), skillText('demo').replace('What', `What ${path}`))
    writeFileSync(join(root, 'demo/a.txt'), `What ${path}`)
    t.equal((await ask()).status, 200, path)
    t.match((await open(url + path)).text, `What ${path}`)
  }
})

t.test('K74: an error is a page for browsers and a problem for programs', async (t) => {
  const { url, folder } = await buildService(t, { files: null })
  const none = await open(url)
  t.match(none, { status: 503, text: /<h1>Skills folder not found[^]*The folder of skills is missing/ })
  t.notMatch(none.text, folder, 'no path of the server')
  t.equal(none.headers.get('retry-after'), '5')
  t.equal(none.headers.get('cache-control'), 'no-store')
  t.notOk(none.headers.has('etag'), 'an error is never what a client has')
  for (const [path, status] of [['/ui/nope', 404], ['/ui/assets/catalog-0.css', 404],
    ['/ui/skills/nope', 503]] as const) {
    t.equal((await open(url + path)).status, status, path)
  }
  const problem = await open(`${url}/ui/nope`, { headers: { accept: '*/*' } })
  t.equal(problem.headers.get('content-type'), 'application/problem+json')
  t.equal((await open(`${url}/ui/skills/%ff`)).headers.get('content-type'), 'application/problem+json')
  t.match(await open(`${url}/ui/status`), { status: 200, text: /not ready[^]*missing/ })
  t.equal((await open(`${url}/ui?q=a?b`)).headers.get('location'), './?q=a?b', 'what was asked goes with it')
  t.equal((await open(`${url}/ui/`)).headers.get('location'), '../')
  t.equal((await open(`${url}/ui/status`, { method: 'POST' })).status, 405)
  t.equal((await open(`${url}/ui/nope`, { method: 'POST' })).status, 404)
})

t.test('K74: style, script and icon are immutable under names that change with them', async (t) => {
  const { links, text, headers } = await open(shared)
  const [, script = '', integrity = ''] = /<script src="([^"]*)" integrity="([^"]*)"/.exec(text) ?? []
  t.match(headers.get('content-security-policy'), integrity)
  const assets = [...links.filter((link) => link.includes('/assets/')), script]
  t.equal(assets.length, 3)
  const types: Readonly<Record<string, string>> =
    { css: 'text/css', js: 'application/javascript', svg: 'image/svg+xml' }
  for (const asset of assets) {
    const { status, headers, text } = await open(new URL(asset, `${shared}/`).href, { headers: { accept: '*/*' } })
    t.equal(status, 200, asset)
    t.equal(headers.get('cache-control'), 'public, max-age=31536000, immutable')
    t.match(headers.get('content-type'), types[asset.split('.').at(-1) ?? ''])
    t.notMatch(text, /https?:\/\/(?!www\.w3\.org\/2000\/svg)/, 'nothing from another host')
  }
  t.match((await open(`${shared}/docs/json`)).text, '"description":"[All skills](../)', 'the page of the API leads back')
})

t.test('K47 K69: below a path prefix every link leads below it, and an unknown address to the list', async (t) => {
  const base = '/team/skills'
  const files = { 'a b': skill('a b', { docs: { 'x.md': 'x' } }) }
  const { url } = await buildService(t, { files, options: { basePath: base } })
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
  const text = /<h1>Page not found[^]*No page has this address\.<\/p>\s*<p class="actions"><a href="\.\.\/">All skills</
  t.match(await open(`${url}${base}/ui/statuz`), { status: 404, text })
})

t.test('K74: UI=false leaves no trace of the pages', async (t) => {
  const { url } = await buildService(t, { files: { demo: skill('demo') }, options: { ui: false } })
  const root = await open(url)
  t.match(root.headers.get('content-type'), 'application/json')
  t.notMatch(root.headers.get('vary') ?? '', /Accept(?!-)/)
  for (const path of ['/ui', '/ui/status', '/ui/skills/demo']) {
    const { status, headers } = await open(url + path)
    t.strictSame([status, headers.get('content-type')], [404, 'application/problem+json'])
  }
})

t.test('K74: a folder of a skill is a page, and each file has a way back; what is not there leads on', async (t) => {
  const page = `${shared}/ui/skills/folders`
  const { text, links } = await open(`${page}/files/scripts`)
  t.match(text, /<h1><bdi>scripts\/<\/bdi><\/h1>/)
  t.match(text, /lib\/<\/bdi><\/a> <span>1 file<\/span>/)
  t.ok(links.includes('../../../../ui/skills/folders/files/scripts/run%20me.py'))
  for (const address of ['/files/', '/files/scripts/']) t.equal((await open(page + address)).status, 200, address)
  t.match((await open(`${page}/files/scripts/lib`)).text, /<h1><bdi>lib\/<\/bdi><\/h1>/)
  t.match((await open(`${page}/files`)).text, /scripts\/<[^]*SKILL\.md</)
  const { links: back } = await open(`${page}/files/scripts/lib/a.py`)
  for (const folder of ['scripts', 'scripts/lib']) {
    t.ok(back.includes(`../../../../../../ui/skills/folders/files/${folder}`), folder)
  }
  const tree = /scripts\/<\/bdi><\/a>\s*<ul class="files">\s*<li><a[^>]*><bdi>run me\.py/
  t.match((await open(page)).text, tree, 'the tree of the skill has what is in the folder')
  t.equal((await open(`${page}/files/script`)).status, 404, 'a beginning of a name is no folder')
  const search = await open(`${shared}/ui/skills/folder`)
  t.match(search, { status: 404, text: /\?q=folder">Search for/ })
  t.match(await open(`${page}/files/run.py`), { status: 404, text: /href="[^"]*\/folders\/files\/">All files/ })
  t.notMatch((await open(`${shared}/ui/skills/${encodeURIComponent('<img src=x>')}`)).text, '<img')
})

t.test('K77: what changed in a skill since a revision that somebody had: files, names, lines', async (t) => {
  const { url, root, folder, fetch } = await buildService(t, {
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
  t.match((await open(`${page}/changes`)).text, /There is no earlier revision to compare with/)
  const { revision } = (await fetch('/catalog/demo')).json() as { readonly revision: string }
  passTick(folder)
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
    t.match(text,
      /SKILL\.md[^]*data\.bin[^]*Not compared here[^]*added<[^]*new\/name\.txt[^]*removed<[^]*gone\.txt[^]*old\.txt/)
    t.notMatch(text, 'z.md')
  }
  t.match((await open(`${page}/changes?from=sha256:${'0'.repeat(64)}`)).text, /is not kept/)
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
  const sources = { status, hooks: [] }
  const { url } = await buildService(t, { files: { demo: skill('demo') }, options: { sources } })
  const { text } = await open(`${url}/ui/status`)
  const why = 'the host &lt;does&gt; not answer'
  t.match(text, new RegExp(`<td>git<[^]*not up to date</span><br>${why}, since <time [^>]*>2026-11-22 11:00:00 UTC<`))
  t.match(text, 'main@sha1:012345678901<')
  t.match(text, `<li>source &quot;skills&quot; is not up to date, failing since 2026-11-22 11:00:00 UTC: ${why}<`)
  t.notMatch(text, 'elsewhere', 'a source of no root that the caller sees')
})

t.test('K74: the page of a skill says who signed it, and what does not hold', async (t) => {
  const signers = ['Ada <b>', 'Eve'].map((name) => createSigner({ name, acceptsExpired: true }))
  const [ada, eve] = signers.map((signer) => ({ signer, validFrom: -Infinity, validTo: Infinity }))
  const results: Readonly<Record<string, Partial<SignatureResult>>> = {
    signed: { identity: ada },
    plain: { status: 'unsigned' },
    stale: { status: 'stale', identity: ada, problem: "'run.sh' changed" },
    expired: { status: 'expired', identity: ada, problem: 'the certificate expired' },
    foreign: { status: 'untrusted' },
    refused: { identity: eve }
  }
  class Checked extends TrustPolicy {
    override async check (state: SkillState) {
      const { revision, skill_name: name } = await state.manifest()
      const signature = { status: 'valid', problem: '', exempt: [], signers, ...results[name] } as const
      return { revision, coveredRevision: revision, signature }
    }
  }
  const policy = new Checked({ trust: { signers, roots: new Map(), deny: new Set(['Eve']) } })
  const { url } = await buildService(t, { files: skills(...Object.keys(results)), options: { policy } })
  for (const [name, text] of [
    ['signed', /<dt>Origin<[^]*"verdict good">signed<\/span> by <bdi>Ada &lt;b&gt;<\/bdi><\/li>/],
    ['plain', /"verdict warning">not signed<\/span><\/li>/],
    ['stale', /changed since it was signed<[^]*&#39;run\.sh&#39; changed/],
    ['expired', /signed with a certificate that has expired<\/span> by <bdi>Ada/],
    ['foreign', /signed by an unknown signer</],
    ['refused', /<h1>Skill not found/]
  ] as const) t.match(await open(`${url}/ui/skills/${name}`), { status: name === 'refused' ? 404 : 200, text })
  for (const path of ['', '/ui/skills/refuse']) t.notMatch((await open(url + path)).text, /refused/, path)
  const { text } = await open(`${url}/ui/status`)
  t.match(text, /,\s<a href="#quarantined">1 skill quarantined<\/a>\./)
  t.match(text, /<bdi>refused<\/bdi><\/td>[^]*<td>the trust file denies the signer Eve <code>trust_denied</)
})

t.test('K76: snippets, the prompt and llms.txt have the address of PUBLIC_URL where it is set', async (t) => {
  const options = { publicUrl: 'https://skills.example.com/team', basePath: '/inner' }
  const { url } = await buildService(t, { files: { demo: skill('demo') }, options })
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

t.test('K64: pages show the view of the caller, and say to other callers what to do', async (t) => {
  const token = newSecret('ci', 'groups: [team]')
  const scraper = newSecret('prometheus', 'scopes: ["metrics:read"]')
  const service = await buildGuarded(t, {
    roots: { open: skills('weather'), closed: skills('weather-secret') },
    access: `tokens:\n  - ${token.entry}\n  - ${scraper.entry}\nrules:\n` +
      '  - { groups: [anonymous], roots: [open] }\n  - { groups: [team], roots: [closed] }\n'
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
  const scraped = await open(url, { headers: { authorization: `Bearer ${scraper.text}` } })
  t.match(scraped, { status: 403, text: /needs the scope skills:read; ask for a token with that scope\./ })
  const links = scraped.links.filter((link) => !link.includes('/assets/'))
  t.strictSame(links, ['#main'], 'no page that this caller may not read either')
  const { text: refused } = await open(url, { headers: { authorization: 'Bearer wrong' } })
  t.match(refused, /<h1>Invalid token<\/h1>[^]*ask the operator of the service for another\./)
  t.notMatch(refused, 'Authorization: Bearer', 'a token was sent')

  const access = `tokens:\n  - ${token.entry}\nrules:\n  - { groups: [team], roots: [open, closed] }\n`
  await service.setAccess(access)
  for (const path of ['/', '/ui/status', '/ui/skills/weather']) {
    const wrong = path === '/' ? { headers: { authorization: 'Bearer wrong' } } : {}
    const { status, text, links } = await open(url + path, wrong)
    t.equal(status, 401, path)
    t.match(text, /<h1>/)
    const style = links.find((link) => link.endsWith('.css')) ?? ''
    t.equal((await open(new URL(style, url + path).href)).status, 200, 'the page has its style')
    const problem = await open(url + path, { headers: { accept: 'application/json' } })
    t.match(problem, { status: 401, text: /"code":"unauthenticated"/ })
  }

  const status = async () => (await open(`${url}/ui/status`, { headers })).text
  t.match(await status(), /verdict good">ready<\/span> – 2 skills\.<\/p>\s*<section/)
  await service.breakAccess(`${access}nonsense: [`)
  const broken = await status()
  t.match(broken,
    /ready<\/span>[^]*<li>the access file cannot be used, so the last good one stays in force; the log/)
  t.notMatch(broken, /nonsense|access\.yaml/, 'the reason may quote the file')
  await service.setAccess(`${access}# fixed\n`)
  t.notMatch(await status(), 'cannot be used')
})

t.test('K74: a list is refined by validity, severity, folder and client, and counts what is left', async (t) => {
  const { url } = await buildService(t, {
    files: {
      good: skill('good'),
      broken: { 'SKILL.md': 'no frontmatter' },
      hidden: { 'SKILL.md': '---\nname: hidden\ndescription: Some text\n---\na\u200bb\n' },
      away: t.fixture('symlink', '../elsewhere')
    },
    options: {
      roots: ['skills', 'more'],
      siblings: {
        elsewhere: skill('elsewhere'),
        // One character more than the format allows; uploads to OpenAI take it.
        more: { other: skill('other'), long: { 'SKILL.md': skillText('long').replace(/What .*/, 'x'.repeat(1_025)) } }
      }
    }
  })
  const list = async (query: string) => (await open(`${url}/${query}`)).text
  for (const [query, names] of [
    ['?valid=true', ['good', 'hidden', 'other']], ['?valid=false', ['broken', 'long']], ['?severity=warning',
      ['hidden']],
    ['?root=more', ['long', 'other']], ['?root=more&valid=true', ['other']], ['?root=nobody', []],
    ['?target=openai-upload&valid=false', ['broken']], ['?target=claude-code&valid=false', []],
    ['?q=other&root=more', ['other']], ['?target=nobody&root=&q=', ['broken', 'good', 'hidden', 'long', 'other']]
  ] as const) t.strictSame(listedNames(await list(query)), names, query)
  const tab = />(All|Valid|Warnings|Errors)(?: <span class="count-of">([\d,]+)<\/span>)?<\/a>/g
  for (const [query, ...counts] of [
    ['', 'All 5', 'Valid 3', 'Warnings 1', 'Errors 2'],
    ['?target=spec', 'All 5', 'Valid 3', 'Warnings 0', 'Errors 2'],
    ['?q=good&valid=false', 'All 1', 'Valid 1', 'Warnings 0', 'Errors 0'],
    ['?root=nobody', 'All 0', 'Valid 0', 'Warnings 0', 'Errors 0']
  ] as const) {
    const shown = (await list(query)).matchAll(tab)
    t.strictSame(Array.from(shown, ([, name, count]) => `${name} ${count}`), counts, query)
  }

  const { text, links } = await open(`${url}/?target=claude-code&root=skills`)
  t.match(text, /<option value="claude-code" selected>/)
  t.match(text, /<option value="skills" selected>/)
  t.match(text, /3 skills for Claude Code/)
  t.match(text, /<h2><a[^>]*><bdi>broken<[^]*?changes a value/, 'the client decides on the mark')
  t.ok(links.includes('./?valid=true&root=skills&target=claude-code'), 'a choice keeps the others')
  t.match(await list('?severity=warning'), /1 skill with warnings</)
  t.match(await list('?q=zzz&root=more'), '<a href="./?q=zzz">Search among all skills</a> <a href="./">Show all')
  const status = (await open(`${url}/ui/status`)).text
  t.match(status,
    /ready<\/span> – 5 skills,\s*<a href="\.\.\/\?valid=false">2 with errors<\/a>,\s*1 entry skipped: the log/)
})
