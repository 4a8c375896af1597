import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { TrustReport } from '../../../src/core/shared/origin.ts'
import { Policy } from '../../../src/trust/policy.ts'
import type { RootPolicy } from '../../../src/trust/trust.ts'
import { finding } from '../../../src/core/format/findings.ts'
import { Shutdown } from '../../../src/http/connections/shutdown.ts'
import type { SourceStatus } from '../../../src/schemas/health.ts'
import { buildService } from '../../helper/build.ts'
import { buildGuarded, newSecret } from '../../helper/guarded.ts'
import { listedNames, openPage as open } from '../../helper/pages.ts'
import { passTick, skill, skillText } from '../../helper/skills.ts'

t.test('K74: a folder of a skill is a page, and each file has a way back', async (t) => {
  const { url } = await buildService(t, { files: { demo: skill('demo', { scripts: { lib: { 'a.py': 'x' }, 'run me.py': 'yy' } }) } })
  const page = `${url}/ui/skills/demo`
  const { text, links } = await open(`${page}/files/scripts`)
  t.match(text, /<h1><bdi>scripts\/<\/bdi><\/h1>/)
  t.match(text, /lib\/<\/bdi><\/a> <span>1 file<\/span>/)
  t.ok(links.includes('../../../../ui/skills/demo/files/scripts/run%20me.py'))
  for (const address of ['/files', '/files/', '/files/scripts/', '/files/scripts/lib']) t.equal((await open(page + address)).status, 200, address)
  t.match((await open(`${page}/files/scripts/lib`)).text, /<h1><bdi>lib\/<\/bdi><\/h1>/, 'the folders around it are in the way back')
  t.match((await open(`${page}/files`)).text, /scripts\/<[^]*SKILL\.md</)
  const { links: back } = await open(`${page}/files/scripts/lib/a.py`)
  for (const folder of ['scripts', 'scripts/lib']) t.ok(back.includes(`../../../../../../ui/skills/demo/files/${folder}`), folder)
  t.match((await open(page)).text, /scripts\/<\/bdi><\/a>\s*<ul class="files">\s*<li><a[^>]*><bdi>run me\.py/, 'the tree of the skill has what is in the folder')
  t.equal((await open(`${page}/files/script`)).status, 404, 'a beginning of a name is no folder')
})

t.test('K74: what is not there may be something else: a name, a file, a search', async (t) => {
  const { url } = await buildService(t, { files: { weather: skill('weather', { scripts: { 'run.py': 'x' } }) } })
  t.match(await open(`${url}/ui/skills/wether`), { status: 404, text: /Did you mean <a href="\.\.\/\.\.\/ui\/skills\/weather"><bdi>weather<[^]*href="\.\.\/\.\.\/\?q=wether">Search for/ })
  t.match(await open(`${url}/ui/skills/weather/files/run.py`), { status: 404, text: /Did you mean <a href="[^"]*\/files\/scripts\/run\.py">/ })
  t.match(await open(`${url}/ui/skills/weather/files/scripts/rum.py`), { status: 404, text: /files\/scripts\/run\.py">/ })
  t.match(await open(`${url}/ui/skills/weather/files/nothing-like-it`), { status: 404, text: /Did you mean <a href="[^"]*\/files\/"><bdi>all files/ })
  const { text } = await open(`${url}/ui/skills/${encodeURIComponent('<img src=x>')}`)
  t.notMatch(text, '<img')
  t.notMatch(text, 'Did you mean')
})

t.test('K77: what changed in a skill since a revision that somebody had: files, names, lines', async (t) => {
  const { url, root, fetch } = await buildService(t, {
    files: { demo: { 'SKILL.md': skillText('demo', 'One.\n\nTwo <b>.\n'), 'gone.txt': 'gone', 'old.txt': 'moved', 'data.bin': Buffer.from([0, 1]), sub: { 'z.md': 'z' } } }
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
  t.match(now.text, `data-changes="../../ui/skills/demo/changes?from=${encodeURIComponent(((await fetch('/catalog/demo')).json() as { readonly revision: string }).revision)}"`)
  t.match(now.text, /changes">Earlier revisions/)
  for (const address of ['/changes', `/changes?from=${encodeURIComponent(revision)}`]) {
    const { status, text } = await open(page + address)
    t.equal(status, 200)
    t.match(text, /<del>-Two &lt;b&gt;\.\n<\/del><ins>\+Three &lt;i&gt;\.\n<\/ins>/)
    t.match(text, /changed<\/span> <a[^>]*><bdi>SKILL\.md[^]*changed<\/span> <a[^>]*><bdi>data\.bin[^]*Not compared here[^]*renamed<\/span> <a[^>]*><bdi>new\/name\.txt[^]*It was <bdi>old\.txt[^]*removed<\/span> <bdi>gone\.txt/)
    t.notMatch(text, 'z.md')
  }
  t.match((await open(`${page}/changes?from=sha256:${'0'.repeat(64)}`)).text, /is not kept any more/)
  t.equal((await open(`${page}/changes?from=nonsense`)).status, 200)
  t.equal((await open(`${url}/ui/skills/none/changes`)).status, 404)
})

t.test('K77: equal files that move are all renamed, each once', async (t) => {
  const { url, root } = await buildService(t, { files: { demo: skill('demo', { a: { '__init__.py': '' }, b: { '__init__.py': '' }, c: { '__init__.py': '' } }) } })
  const page = `${url}/ui/skills/demo`
  t.equal((await open(page)).status, 200)
  passTick(join(root, '..'))
  mkdirSync(join(root, 'demo/x'))
  for (const folder of ['a', 'b']) renameSync(join(root, 'demo', folder), join(root, 'demo/x', folder))
  rmSync(join(root, 'demo/c'), { recursive: true })
  const { text } = await open(`${page}/changes`)
  const kinds = Array.from(text.matchAll(/(added|removed|renamed|changed)<\/span> (?:<a[^>]*>)?<bdi>([^<]*)<\/bdi>(?:[^]*?It was <bdi>([^<]*)<\/bdi>)?/g), ([, ...parts]) => parts.join(' ').trim())
  t.strictSame(kinds, ['renamed x/a/__init__.py a/__init__.py', 'renamed x/b/__init__.py b/__init__.py', 'removed c/__init__.py'])
})

t.test('K74: the status page says since when and why a source is not up to date', async (t) => {
  const status: SourceStatus[] = [
    { name: 'skills', kind: 'git', state: 'stale', skills: 1, revision: `main@sha1:${'0123456789'.repeat(4)}`, checked_at: '2026-11-22T10:00:00.000Z', failing_since: '2026-11-22T11:00:00.000Z', error: { code: 'unreachable', message: 'the host <does> not answer' } },
    { name: 'elsewhere', kind: 'oci', state: 'ok', skills: 9 }
  ]
  const { url } = await buildService(t, { files: { demo: skill('demo') }, options: { sources: { status, hooks: [], githubOf: () => undefined } } })
  const { text } = await open(`${url}/ui/status`)
  t.match(text, /<bdi>skills<\/bdi><\/td><td>git<\/td><td><span class="verdict warning">not up to date<\/span><br>the host &lt;does&gt; not answer, since <time datetime="2026-11-22T11:00:00\.000Z">2026-11-22 11:00:00 UTC<\/time>/)
  t.match(text, 'main@sha1:012345678901<')
  t.match(text, /ready<\/span> – the source skills is not up to date, it fails since 2026-11-22 11:00:00 UTC: the host &lt;does&gt; not answer\./)
  t.notMatch(text, 'elsewhere', 'a source of no root that the caller sees')
})

t.test('K74: the status page says which file of the operator cannot be used, and since it is mended no more', async (t) => {
  const token = newSecret('ci', 'groups: [team]')
  const access = `tokens:\n  - ${token.entry}\nrules:\n  - { groups: [team], roots: [skills] }\n`
  const service = await buildGuarded(t, { roots: { skills: { demo: skill('demo') } }, access })
  const headers = { authorization: `Bearer ${token.text}` }
  const status = async () => (await open(`${service.url}/ui/status`, { headers })).text
  t.match(await status(), /verdict good">ready<\/span> – 1 skill, and nothing is wrong\./)
  await service.breakAccess(`${access}nonsense: [`)
  t.match(await (await service.get('/readyz', token.text)).json(), { status: 'ready', detail: /^the access file cannot be used as it is/ })
  const broken = await status()
  t.match(broken, /verdict warning">ready<\/span> – the access file cannot be used as it is, so the last good one stays in force; the log says why\./)
  t.notMatch(broken, /nonsense|access\.yaml/, 'the reason may quote the file')
  await service.setAccess(`${access}# mended\n`)
  t.match(await status(), 'nothing is wrong')
})

t.test('K74: several reasons on the status page are a list', async (t) => {
  const { url } = await buildService(t, { files: { demo: skill('demo') }, options: { roots: ['skills', 'other', 'more'] } })
  t.match((await open(`${url}/ui/status`)).text, /verdict warning">ready<\/span> – 2 things are wrong:<\/p>\s*<ul class="reasons"><li>the folder other \(project\) is missing, or is a file<\/li><li>the folder more \(project\) is missing, or is a file<\/li><\/ul>/)
})

t.test('K91: the status page of a service that is stopping says that it is not ready', async (t) => {
  const shutdown = new Shutdown()
  const { url } = await buildService(t, { files: { demo: skill('demo') }, options: { shutdown } })
  await shutdown.begin()
  t.match((await open(`${url}/ui/status`)).text, /verdict error">not ready<\/span> – The service is stopping\./)
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
  const policy: RootPolicy = Object.assign(new Policy({}), {
    guards: () => true,
    judge: async (_root: string, { manifest: { skill_name: name, revision, files } }: Parameters<Policy['judge']>[1]) => ({
      files,
      revision,
      isServed: name !== 'refused',
      report: { signed: false, status: null, signer: null, pinned: null, checked_revision: revision, ...reports[name] },
      findings: name === 'stale' ? [finding('signature_stale', "files differ from what was signed: 'run.sh'", 'Sign the skill again')] : []
    })
  })
  const { url } = await buildService(t, { files: Object.fromEntries(Object.keys(reports).map((name) => [name, skill(name)])), options: { policy } })
  const page = async (name: string) => (await open(`${url}/ui/skills/${name}`)).text
  t.match(await page('signed'), /<dt>Origin<\/dt><dd><ul><li><span class="verdict good">signed<\/span> by <bdi>Ada &lt;b&gt;<\/bdi><\/li>\s*<li>this revision is locked<\/li>/)
  t.match(await page('plain'), /<span class="verdict warning">not signed<\/span><\/li>\s*<li><span class="verdict warning">not in the lock</)
  t.match(await page('stale'), /changed since it was signed<[^]*Files differ from what was signed: &#39;run\.sh&#39;/)
  t.match(await page('expired'), /signed with a certificate that has expired<\/span> by <bdi>Ada</)
  t.match(await page('foreign'), /signed by somebody unknown</)
  t.match(await open(`${url}/ui/skills/refused`), { status: 404, text: /<h1>Skill not found/ })
  t.notMatch((await open(url)).text, /refused/)
  t.notMatch((await open(`${url}/ui/skills/refuse`)).text, 'refused', 'nor as what may have been meant')
  t.notMatch((await open(`${url}/ui/status`)).text, 'refused', 'a page counts them; the log and skillserve verify name them')
  t.match((await open(`${url}/ui/status`)).text, /<dt>Quarantined<\/dt><dd>1 folder, kept back by the lock or the trust file/)
})

t.test('K76: snippets have the address of PUBLIC_URL where it is set', async (t) => {
  const { url } = await buildService(t, { files: { demo: skill('demo') }, options: { publicUrl: 'https://skills.example.com/team', basePath: '/inner' } })
  for (const path of ['/inner/', '/inner/ui/skills/demo']) {
    const { text } = await open(url + path)
    t.match(text, 'claude mcp add --transport http skills https://skills.example.com/team/mcp')
    t.match(text, 'data-base="https://skills.example.com/team"')
  }
})

t.test('K64: pages show the view of the caller, and tell whoever may not what to do', async (t) => {
  const token = newSecret('ci', 'groups: [team]')
  const scraper = newSecret('prometheus', 'scopes: ["metrics:read"]')
  const service = await buildGuarded(t, {
    roots: { open: { weather: skill('weather') }, closed: { 'weather-secret': skill('weather-secret') } },
    access: `tokens:\n  - ${token.entry}\n  - ${scraper.entry}\nrules:\n  - { groups: [anonymous], roots: [open] }\n  - { groups: [team], roots: [closed] }\n`
  })
  const { url } = service
  const headers = { authorization: `Bearer ${token.text}` }
  t.strictSame(listedNames((await open(url)).text), ['weather'])
  t.strictSame(listedNames((await open(url, { headers })).text), ['weather', 'weather-secret'])
  t.notMatch((await open(url)).text, 'closed', 'nor the names of other folders')
  t.strictSame(listedNames((await open(`${url}/?root=closed`)).text), [])
  for (const path of ['/ui/skills/weather-secret', '/ui/skills/weather-secre', '/ui/skills/weather-secret/changes', '/ui/skills/weather-secret/files', '/ui/status']) {
    const { status, text, headers } = await open(url + path)
    t.equal(status, 401, path)
    t.match(text, /<h1>Not authenticated<\/h1>[^]*through the proxy of your organization[^]*Authorization: Bearer/)
    t.equal(text.match(/Authorization: Bearer/g)?.length, 1, 'what to do is said once')
    t.notMatch(text, 'Did you mean')
    t.match(headers.get('www-authenticate'), 'Bearer')
  }
  t.match(await open(`${url}/ui/skills/weather-secre`, { headers }), { status: 404, text: /Did you mean <a[^>]*><bdi>weather-secret/ })
  t.equal((await open(`${url}/ui/status`, { headers })).status, 200)
  const scraped = await open(url, { headers: { authorization: `Bearer ${scraper.text}` } })
  t.match(scraped, { status: 403, text: /needs the scope skills:read; ask for a token with that scope\./ })
  t.strictSame(scraped.links.filter((link) => !link.includes('/assets/')), ['#main'], 'no page that this caller may not read either')
  const { text: refused } = await open(url, { headers: { authorization: 'Bearer wrong' } })
  t.match(refused, /<h1>Invalid token<\/h1>[^]*ask the operator of the service for another\./)
  t.notMatch(refused, 'Authorization: Bearer', 'a token was sent')

  await service.setAccess(`tokens:\n  - ${token.entry}\nrules:\n  - { groups: [team], roots: [open, closed] }\n`)
  for (const path of ['/', '/ui/status', '/ui/skills/weather']) {
    const { status, text, links } = await open(url + path, path === '/' ? { headers: { authorization: 'Bearer wrong' } } : {})
    t.equal(status, 401, path)
    t.match(text, /<h1>/)
    const style = links.find((link) => link.endsWith('.css')) ?? ''
    t.equal((await open(new URL(style, url + path).href)).status, 200, 'the page has its style')
    t.match(await open(url + path, { headers: { accept: 'application/json' } }), { status: 401, text: /"code":"unauthenticated"/ })
  }
})
