import { linkSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import t from 'tap'
import { buildService } from '../helper/build.ts'
import { attack, checkLog, FILES, SIBLINGS } from './attacks/hostile-urls.ts'

t.test('legal inputs work', async (t) => {
  const longName = 'n'.repeat(255)
  const names = ['My Skill', 'UPPER', '日本語', 'v1.2', 'a_b', '__proto__', 'constructor', '-x', '100%', longName]
  const service = await buildService(t, { files: FILES, options: { siblings: SIBLINGS } })
  for (const name of names) {
    mkdirSync(join(service.root, name))
    writeFileSync(join(service.root, name, 'SKILL.md'), name)
  }

  await t.test('file names', async (t) => {
    const rows: ReadonlyArray<readonly [appended: string, text: string]> = [
      ['foo..bar.txt', 'dots'],
      ['100%25.txt', 'percent'],
      ['a%20b.md', 'blank'],
      ['%c3%a9.md', 'nfc'],
      ['.hidden.md', 'hidden'],
      ['.github/x.yml', 'x: 1'],
      ['.env.example', 'example'],
      ['modules/x/index.js', 'x'],
      ['SKILL.MD', '# Demo\n'],
      ['a+b.txt', 'plus'],
      ['a%2bb.txt', 'plus'],
      ['a;b.txt', 'semicolon'],
      ['a,b@c!.txt', 'comma'],
      ['a%3fb%23c.txt', 'question'],
      ['%252e%252e', 'two encoded dots'],
      ['empty.txt', '']
    ]
    for (const [appended, text] of rows) {
      const response = await attack(t, service, `/skills/demo/files/${appended}`, { statuses: [200] })
      t.equal(response.text, text, appended)
      const json = await service.raw('GET', `/skills/demo/files/${appended}`, { headers: ['Accept: application/json'] })
      t.match(json.json(), { success: true, content: text, file_path: decodeURIComponent(appended) })
    }
    t.equal((await service.raw('GET', '/skills/upper/files/SKILL.md')).text, 'upper', 'K6: the other spelling')
    t.equal((await service.raw('GET', '/skills/demo-evil/files/x.md')).text, 'evil', 'a folder without SKILL.md is a skill')
    const { files } = (await service.fetch('/skills/demo/files')).json() as { files: ReadonlyArray<{ path: string }> }
    for (const path of ['.hidden.md', '.github/x.yml', '.env.example', 'modules/x/index.js']) t.ok(files.some((file) => file.path === path), path)
  })

  await t.test('names of skills, on every door', async (t) => {
    const { skills } = (await service.fetch('/skills')).json() as { skills: readonly string[] }
    for (const name of names) {
      t.ok(skills.includes(name), name)
      const encoded = encodeURIComponent(name)
      t.same((await service.fetch(`/skills/${encoded}`)).json(), { skill_name: name, documentation: name })
      t.match((await service.fetch(`/skills/${encoded}/files`)).json(), { skill_name: name, files: [{ path: 'SKILL.md' }] })
      t.equal((await service.fetch(`/skills/${encoded}/files/SKILL.md`)).text, name)
      t.same((await service.post('/agent/tools/get_skill', { skill_name: name })).json(), { skill_name: name, documentation: name })
    }
  })

  await t.test('a GET with a body, a Host with a port, HTTP/1.0 with a Host', async (t) => {
    const { port } = new URL(service.url)
    t.equal((await service.raw('GET', '/skills/demo', { body: 'ignored' })).status, 200)
    t.equal((await service.raw('GET', '/skills/demo', { host: `127.0.0.1:${port}` })).status, 200)
    t.equal((await service.raw('GET', '/skills/demo', { version: '1.0' })).status, 200)
  })
  await checkLog(t, service)
})

t.test('roots that are links, relative or end with a slash; links inside a skill', async (t) => {
  const service = await buildService(t, {
    files: null,
    options: {
      roots: ['link/'],
      siblings: {
        real: { demo: { 'SKILL.md': 'x', folder: { 'a.md': 'a' }, other: t.fixture('symlink', 'folder'), 'b.md': t.fixture('symlink', 'other/a.md') } },
        link: t.fixture('symlink', 'real')
      }
    }
  })
  for (const path of ['folder/a.md', 'other/a.md', 'b.md']) {
    t.equal((await service.raw('GET', `/skills/demo/files/${path}`)).text, 'a', path)
  }
  t.equal((await service.raw('GET', '/skills/demo/files/../x')).status, 403)
})

t.test('the root of the file system as a root', async (t) => {
  const service = await buildService(t, { files: null, options: { roots: [relative(t.testdirName, '/')], siblings: { 'a.md': 'a' } } })
  const [, name = ''] = realpathSync(service.folder).split('/')
  const { skills } = (await service.fetch('/skills')).json() as { skills: readonly string[] }
  t.ok(skills.includes(name))
  t.equal((await service.raw('GET', `/skills/${name}/files/../etc/passwd`)).status, 403)
})

t.test('a hard link cannot be told from a file, and is served', async (t) => {
  const service = await buildService(t, { files: { demo: { 'SKILL.md': 'x' } }, options: { siblings: { outside: { 'a.md': 'a' } } } })
  linkSync(join(service.folder, 'outside/a.md'), join(service.root, 'demo/a.md'))
  t.equal((await service.raw('GET', '/skills/demo/files/a.md')).text, 'a')
})
