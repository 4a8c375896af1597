import { createHash } from 'node:crypto'
import { cpSync, existsSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { DiscoveryIndex, LegacyDiscoveryIndex } from '../../src/well-known/discovery.ts'
import { buildService, type Files, type Service } from '../helper/build.ts'
import { buildGuarded, newSecret } from '../helper/guarded.ts'
import { differences, installSkills, serveOnly } from '../helper/skills-client.ts'
import { passTick, skill, skillText, until } from '../helper/skills.ts'

const INDEX = '/.well-known/agent-skills/index.json'
const LEGACY_INDEX = '/.well-known/skills/index.json'

const files = (): Files => ({
  alone: skill('alone'),
  lower: { 'skill.md': skillText('lower'), 'a.txt': 'a' },
  more: skill('more', { 'a b.md': 'blank', docs: { 'x.json': '{}', 'page.html': '<p>' }, '.env': 'secret' }),
  accents: skill('accents', { 'é.md': 'é' }),
  repaired: { 'SKILL.md': '---\nname: repaired\ndescription: Use when: asked\n---\nText\n' },
  invalid: { 'SKILL.md': '# No frontmatter\n' },
  'Upper Case': skill('Upper Case')
})

function digestOf (bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

async function readIndex (service: Service): Promise<DiscoveryIndex> {
  return (await service.fetch(INDEX)).json() as DiscoveryIndex
}

/** As a client does: RFC 3986 §5. */
function resolve ({ url }: DiscoveryIndex['skills'][number]): string {
  return new URL(url, `http://localhost${INDEX}`).pathname
}

t.test('one service', async (t) => {
  const service = await buildService(t, { files: files() })

  t.test('both indexes: JSON with an ETag, 304, HEAD, no cache without asking', async (t) => {
    for (const path of [INDEX, LEGACY_INDEX]) {
      const headers = { 'accept-encoding': 'identity' }
      const get = await service.fetch(path, { headers })
      t.equal(get.status, 200)
      t.match(get.headers.get('content-type'), /^application\/json(?:;|$)/)
      t.equal(get.headers.get('cache-control'), 'no-cache')
      const etag = get.headers.get('etag') ?? ''
      t.match(etag, /^"[\da-f]{64}"$/)
      const head = await service.fetch(path, { method: 'HEAD', headers })
      t.equal(head.headers.get('content-length'), String(get.bytes.length))
      t.equal(head.headers.get('etag'), etag)
      t.equal((await service.fetch(path, { headers: { 'if-none-match': etag } })).status, 304)
      t.equal((await service.fetch(path, { method: 'POST' })).status, 405)
      t.equal(get.headers.get('access-control-allow-origin'), null, 'not for every page that the user opens')
    }
  })

  t.test('0.2.0: what clients take, and each artifact has its digest, type and a strong ETag', async (t) => {
    const { $schema, skills } = await readIndex(service)
    t.equal($schema, 'https://schemas.agentskills.io/discovery/0.2.0/schema.json')
    t.same(skills.map(({ name, type }) => [name, type]), [
      ['accents', 'archive'], ['alone', 'skill-md'], ['lower', 'archive'], ['more', 'archive']
    ])
    for (const entry of skills) {
      t.equal(entry.description, `What ${entry.name} is for`)
      const path = resolve(entry)
      const get = await service.fetch(path)
      t.equal(get.status, 200, path)
      t.equal(digestOf(get.bytes), entry.digest)
      t.equal(get.headers.get('etag'), `"${entry.digest.slice('sha256:'.length)}"`)
      t.match(get.headers.get('content-type'), entry.type === 'archive'
        ? /^application\/zip$/
        : /^text\/markdown; charset=utf-8$/)
      t.equal(get.headers.get('cache-control'), 'max-age=31536000, immutable')
      t.equal(get.headers.get('content-encoding'), null)
      const head = await service.fetch(path, { method: 'HEAD' })
      t.equal(head.status, 200)
      t.equal(head.headers.get('content-length'), String(get.bytes.length))
      t.equal((await service.fetch(path, { headers: { 'if-none-match': get.headers.get('etag') ?? '' } })).status, 304)
      const part = await service.fetch(path, { headers: { range: 'bytes=2-5' } })
      t.equal(part.status, 206)
      t.ok(part.bytes.equals(get.bytes.subarray(2, 6)))
    }
    const [lower = ''] = skills.filter(({ name }) => name === 'lower').map(resolve)
    const packed = (await service.fetch(lower)).bytes.toString('latin1')
    t.match(packed, /SKILL\.md---/, 'the main file has the name that clients look for')
  })

  t.test('0.1.0: every file that is listed, under its own type', async (t) => {
    const { skills } = (await service.fetch(LEGACY_INDEX)).json() as LegacyDiscoveryIndex
    t.same(skills.map(({ name, files }) => [name, ...files]), [
      ['alone', 'SKILL.md'],
      ['lower', 'SKILL.md', 'a.txt'],
      ['more', 'SKILL.md', 'a b.md', 'docs/page.html', 'docs/x.json']
    ])
    for (const { name, files } of skills) {
      for (const file of files) {
        const path = `/.well-known/skills/${name}/${file.replace(' ', '%20')}`
        const get = await service.fetch(path)
        t.equal(get.status, 200, path)
        t.match(get.headers.get('content-type'), {
          md: /^text\/markdown/, txt: /^text\/plain/, json: /^application\/json/, html: /^text\/html/
        }[file.split('.')[1] ?? ''])
        t.match(get.headers.get('content-security-policy'), 'sandbox')
        t.equal(get.headers.get('cache-control'), 'no-cache')
        t.equal((await service.fetch(path, { method: 'HEAD' })).headers.get('content-length'), String(get.bytes.length))
        const headers = { 'if-none-match': get.headers.get('etag') ?? '' }
        t.equal((await service.fetch(path, { headers })).status, 304)
      }
    }
  })

  t.test('everything else is 404, and no redirect', async (t) => {
    const { skills: [accents, alone] } = await readIndex(service)
    const zeros = '0'.repeat(64)
    const hex = alone?.digest.slice('sha256:'.length)
    const archive = accents?.digest.slice('sha256:'.length)
    const ofArchive = digestOf((await service.fetch('/skills/alone/archive.zip')).bytes)
    const paths = [
      `/.well-known/agent-skills/alone/${zeros}/SKILL.md`,
      `/.well-known/agent-skills/alone/${hex}/archive.zip`,
      `/.well-known/agent-skills/alone/${hex?.toUpperCase()}/SKILL.md`,
      `/.well-known/agent-skills/alone/sha256:${hex}/SKILL.md`,
      `/.well-known/agent-skills/alone/${ofArchive.slice('sha256:'.length)}/archive.zip`,
      `/.well-known/agent-skills/accents/${archive}/SKILL.md`,
      `/.well-known/agent-skills/more/${digestOf(Buffer.from(skillText('more'))).slice('sha256:'.length)}/SKILL.md`,
      `/.well-known/agent-skills/accents/${zeros}/archive.zip`,
      `/.well-known/agent-skills/invalid/${zeros}/archive.zip`,
      `/.well-known/agent-skills/__proto__/${zeros}/archive.zip`,
      '/.well-known/agent-skills/alone/SKILL.md',
      '/.well-known/skills/',
      '/.well-known/skills/more/.env',
      '/.well-known/skills/more/',
      '/.well-known/skills/more/docs/../SKILL.md',
      '/.well-known/skills/more/..%2Falone%2FSKILL.md',
      '/.well-known/skills/more/%2Fetc%2Fpasswd',
      '/.well-known/skills/lower/skill.md',
      '/.well-known/skills/accents/SKILL.md',
      '/.well-known/skills/repaired/SKILL.md',
      '/.well-known/skills/Upper%20Case/SKILL.md',
      '/.well-known/skills/..%2Fskills/SKILL.md'
    ]
    for (const path of paths) {
      for (const method of ['GET', 'HEAD']) {
        const response = await service.raw(method, path)
        t.equal(response.status, 404, `${method} ${path}`)
        t.equal(response.headers['cache-control'], 'no-store')
      }
    }
    t.match((await service.fetch('/.well-known/skills/nope/SKILL.md')).json(), { code: 'artifact_not_found' })
  })
})

for (const [keepMs, becomes] of [[60_000, 'readable still'], [0, 'gone where nothing is kept']] as const) {
  t.test(`K59: after a change the index has a new address, and the old one is ${becomes}`, async (t) => {
    const service = await buildService(t, {
      files: { alone: skill('alone'), more: skill('more', { docs: { 'x.json': '{}' } }) },
      options: { keep: { keepMs }, tickMs: 20 }
    })
    const find = async (name: string) => (await readIndex(service)).skills.find((entry) => entry.name === name)
    for (const [name, file, text] of [
      ['alone', 'SKILL.md', skillText('alone', 'Changed\n')], ['more', 'docs/x.json', '{"changed": true}']
    ] as const) {
      const before = await find(name)
      if (before === undefined) throw new Error(`${name} is not listed`)
      writeFileSync(join(service.root, name, file), text)
      const old = await service.fetch(resolve(before))
      if (keepMs === 0) t.match(old.json(), { code: 'artifact_not_found' }, name)
      else t.equal(digestOf(old.bytes), before.digest, name)
      await until(async () => (await find(name))?.digest !== before.digest)
      const after = await find(name)
      t.equal(digestOf((await service.fetch(after === undefined ? '' : resolve(after))).bytes), after?.digest)
    }
  })
}

t.test('any page may read what is public, and nothing else', async (t) => {
  const options = { host: '0.0.0.0' }
  const service = await buildService(t, { files: files(), options })
  for (const path of [
    INDEX, LEGACY_INDEX, '/.well-known/skills/alone/SKILL.md', '/.well-known/skills/nope/SKILL.md',
    ...(await readIndex(service)).skills.map(resolve)
  ]) {
    t.equal((await service.fetch(path)).headers.get('access-control-allow-origin'), '*', path)
  }
  t.equal((await service.fetch('/skills')).headers.get('access-control-allow-origin'), null)
  await t.test('K65: with callers on, what anonymous callers see', async (t) => {
    const ann = newSecret('ann', 'groups: [docs]')
    const access = `anonymous: [public]\ntokens:\n  - ${ann.entry}\nrules:\n  - { groups: [public, docs] }\n`
    const { get } = await buildGuarded(t, { roots: { docs: { alone: skill('alone') } }, access, host: '0.0.0.0' })
    for (const path of [INDEX, LEGACY_INDEX, '/.well-known/skills/alone/SKILL.md', '/.well-known/skills/alone/nope']) {
      t.equal((await get(path)).headers.get('access-control-allow-origin'), '*', path)
      t.equal((await get(path, ann.text)).headers.get('access-control-allow-origin'), null, path)
    }
    const refused = await get('/.well-known/skills/nope/SKILL.md')
    t.strictSame([
      refused.status, refused.headers.get('www-authenticate')
    ], [401, 'Bearer realm="skillserve"'], 'who asks for more may have a token')
  })
  await t.test('published on loopback, as the compose file does', async (t) => {
    const fenced = await buildService(
      t, { files: files(), options: { ...options, allowedHosts: ['localhost', '127.0.0.1', 'skillserve'] } }
    )
    t.equal((await fenced.fetch(INDEX)).headers.get('access-control-allow-origin'), null)
  })
})

t.test('K48: no root is 503, also after an empty one, which has empty indexes', async (t) => {
  const none = await buildService(t, { files: null })
  for (const path of [INDEX, LEGACY_INDEX, '/.well-known/skills/alone/SKILL.md']) {
    t.match((await none.fetch(path)).json(), { code: 'skills_folder_not_found' }, path)
  }
  await t.test('empty', async (t) => {
    const empty = await buildService(t)
    t.same((await readIndex(empty)).skills, [])
    t.equal((await empty.fetch(LEGACY_INDEX)).text, '{"skills":[]}')
    for (const path of [INDEX, LEGACY_INDEX]) t.equal((await empty.fetch(path)).status, 200)
    rmSync(empty.root, { recursive: true })
    for (const path of [INDEX, LEGACY_INDEX]) {
      const { status, headers, json } = await empty.fetch(path)
      t.match(json(), { code: 'skills_folder_not_found' }, path)
      t.strictSame([status, headers.get('retry-after')], [503, '5'], path)
    }
  })
})

const cli = fileURLToPath(new URL('../../node_modules/skills/bin/cli.mjs', import.meta.url))

const ONE_SKILL_FILES = {
  alone: skill('alone'),
  more: skill('more', { docs: { 'x.md': 'x' } }),
  long: { 'SKILL.md': `---\nname: long\ndescription: ${'\u{1F600}'.repeat(600)}\n---\nText\n`, 'b.md': 'b' },
  invalid: { 'SKILL.md': '# No frontmatter\n' },
  empty: { 'a.md': 'a' }
}

t.test('one service', async (t) => {
  const service = await buildService(t, { files: ONE_SKILL_FILES })
  const indexOf = async (name: string) => {
    const path = `/skills/${name}/.well-known/agent-skills/index.json`
    const { skills } = (await service.fetch(path)).json() as DiscoveryIndex
    return { path, skills }
  }
  const legacyIndexOf = async (name: string) =>
    ((await service.fetch(`/skills/${name}/.well-known/skills/index.json`)).json() as LegacyDiscoveryIndex).skills

  t.test('the index of a skill has its entry of the whole index, with an address of the same artifact', async (t) => {
    const whole = (await service.fetch('/.well-known/agent-skills/index.json')).json() as DiscoveryIndex
    for (const name of ['alone', 'more']) {
      const { path, skills: [entry, ...others] } = await indexOf(name)
      const expected = whole.skills.find((each) => each.name === name)
      t.same(others, [])
      t.same({ ...entry, url: '' }, { ...expected, url: '' })
      const url = new URL(entry?.url ?? '', `${service.url}${path}`)
      t.equal(url.pathname, `/.well-known/agent-skills/${expected?.url}`)
      t.equal((await service.fetch(url.pathname)).status, 200)
      // Below a path prefix of a proxy too.
      t.match(new URL(entry?.url ?? '', `http://host/prefix${path}`).pathname, '/prefix/.well-known/agent-skills/')
      const etag = (await service.fetch(path)).headers.get('etag') ?? ''
      t.equal((await service.fetch(path, { headers: { 'if-none-match': etag } })).status, 304)
    }
  })

  t.test('a skill that clients do not take has an empty index, a name of no skill none', async (t) => {
    t.same((await indexOf('invalid')).skills, [])
    t.same(await legacyIndexOf('invalid'), [])
    t.same((await indexOf('empty')).skills, [], 'also one without a main file')
    t.same((await indexOf('long')).skills, [])
    for (const version of ['agent-skills', 'skills']) {
      t.match(await service.fetch(`/skills/nope/.well-known/${version}/index.json`), { status: 404 })
    }
  })

  t.test('0.1.0: files of this skill, and no others', async (t) => {
    t.match(await legacyIndexOf('long'), [
      {
        name: 'long',
        files: ['SKILL.md',
          'b.md'],
        version: (await service.skills.read('long', (skill) => skill.manifest())).revision
      }
    ])
    const read = async (path: string) => await service.fetch(`/skills/long/.well-known/skills/${path}`)
    const { text, headers } = await read('long/b.md')
    t.strictSame([text, headers.get('content-type')], ['b', 'text/markdown; charset=utf-8'])
    for (const path of [
      'long/c.md', 'alone/SKILL.md', 'nope/SKILL.md', 'long/.env', 'long/'
    ]) t.equal((await read(path)).status, 404, path)
  })

  t.test('skills add URL/skills/NAME installs this skill alone', async (t) => {
    const { succeeded, output, folder } = await installSkills(`${service.url}/skills/more`, { cli, cwd: t.testdir() })
    t.ok(succeeded, output)
    t.same(existsSync(folder) ? readdirSync(folder) : [], ['more'])
    t.same(differences(join(service.root, 'more'), join(folder, 'more')), [])
  })
})

t.test('K52: any change in a skill is soon in the indexes', async (t) => {
  const service = await buildService(t, {
    files: {
      demo: skill('demo', { docs: { 'a.md': 'a', 'b.md': 'b' }, link: t.fixture('symlink', 'docs/a.md') }),
      other: skill('other')
    },
    options: { tickMs: 20 }
  })
  const { root } = service
  const at = (path: string) => join(root, path)
  const index = async () => (await service.fetch(INDEX)).text
  for (const [what, change] of [
    ['a file deep inside', () => { writeFileSync(at('demo/docs/a.md'), 'changed') }],
    ['another target of a link', () => {
      rmSync(at('demo/link'))
      symlinkSync('docs/b.md', at('demo/link'))
    }],
    ['a skill that became invalid', () => { writeFileSync(at('demo/SKILL.md'), 'no frontmatter') }],
    ['a skill that became valid again', () => { writeFileSync(at('demo/SKILL.md'), skillText('demo')) }],
    ['a skill that went away', () => { rmSync(at('demo'), { recursive: true }) }]
  ] as const) {
    const before = await index()
    passTick(service.folder)
    change()
    await until(async () => await index() !== before)
    t.pass(what)
  }
  t.strictSame((await readIndex(service)).skills.map(({ name }) => name), ['other'])
})

const EXAMPLES = fileURLToPath(new URL('../../skills/', import.meta.url))

t.test('the skills client installs all skills that an index lists byte for byte, however odd', async (t) => {
  const service = await buildService(t, {
    files: {
      bom: { 'SKILL.md': `\uFEFF${skillText('bom')}` },
      casing: { 'skill.md': skillText('casing'), 'a b.md': 'x' },
      'closing-fence': { 'SKILL.md': '---\nname: closing-fence\ndescription: d\n---' },
      colon: { 'SKILL.md': '---\nname: colon\ndescription: Use when: asked\n---\nText\n' },
      crlf: { 'SKILL.md': skillText('crlf').replaceAll('\n', '\r\n') },
      dashes: { 'SKILL.md': '---\nname: dashes\ndescription: a\n----: c\n---\nText\n' },
      dots: skill('dots', { 'a..b.md': 'x', 'c#d?e%20[f].md': 'x', '$&+,;=@~!\'()*.md': 'x' }),
      emoji: { 'SKILL.md': `---\nname: emoji\ndescription: ${'\u{1F600}'.repeat(600)}\n---\nText\n` },
      fence: { 'SKILL.md': skillText('fence').replace('---', '---  ') },
      folded: { 'SKILL.md': '---\nname: folded\ndescription: >-\n  one\n  two\nmetadata: {a: "b"}\n---\nText\n' },
      invalid: { 'SKILL.md': '# No frontmatter\n' },
      plain: skill('plain', { '$&+,;=@~!\'()*"<>|^`{}.md': 'x', ' lead.md': 'x' }),
      slash: skill('slash', { 'a\\b.md': 'x' })
    }
  })
  cpSync(EXAMPLES, service.root, { recursive: true })
  const examples = readdirSync(EXAMPLES)
  const expected = {
    '/.well-known/agent-skills/': ['bom', 'casing', 'closing-fence', 'crlf', 'dots', 'folded', 'plain'],
    '/.well-known/skills/': ['bom', 'casing', 'closing-fence', 'crlf', 'emoji', 'folded', 'plain']
  }
  for (const [prefix, odd] of Object.entries(expected)) {
    await t.test(`through ${prefix}`, async (t) => {
      const names = [...odd, ...examples].sort()
      t.same(await listedNames(service, prefix), names)
      const gateway = await serveOnly(t, prefix, service.url)
      const { succeeded, output, folder } = await installSkills(gateway, { cli, cwd: t.testdir() })
      t.ok(succeeded, output)
      t.notMatch(output, 'OFFLINE')
      t.match(output, `Found ${names.length} skills`)
      t.same(readdirSync(folder), names)
      // The client writes decoded text, so that a byte order mark is gone, and gives the main file its usual name.
      const changed = { bom: ['SKILL.md'], casing: ['skill.md', 'SKILL.md'] }
      for (const name of names) {
        t.same(differences(join(service.root, name), join(folder, name)), { [name]: [], ...changed }[name], name)
      }
    })
  }
})

async function listedNames (service: Service, prefix: string): Promise<readonly string[]> {
  const { skills } = (await service.fetch(`${prefix}index.json`)).json() as {
    readonly skills: ReadonlyArray<{ readonly name: string }>
  }
  return skills.map(({ name }) => name)
}
