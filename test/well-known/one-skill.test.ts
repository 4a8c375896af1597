import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { DiscoveryIndex, LegacyDiscoveryIndex } from '../../src/well-known/discovery.ts'
import { buildService } from '../helper/build.ts'
import { differences, installSkills } from '../helper/skills-client.ts'
import { skill, skillText } from '../helper/skills.ts'

const cli = fileURLToPath(new URL('../../node_modules/skills/bin/cli.mjs', import.meta.url))

const FILES = {
  alone: skill('alone'),
  more: skill('more', { docs: { 'x.md': 'x' } }),
  long: { 'SKILL.md': `---\nname: long\ndescription: ${'\u{1F600}'.repeat(600)}\n---\nText\n`, 'b.md': 'b' },
  invalid: { 'SKILL.md': '# No frontmatter\n' },
  empty: { 'a.md': 'a' }
}

t.test('one service', async (t) => {
  const service = await buildService(t, { files: FILES })
  const indexOf = async (name: string) => {
    const path = `/skills/${name}/.well-known/agent-skills/index.json`
    const { skills } = (await service.fetch(path)).json() as DiscoveryIndex
    return { path, skills }
  }
  const legacyIndexOf = async (name: string) => ((await service.fetch(`/skills/${name}/.well-known/skills/index.json`)).json() as LegacyDiscoveryIndex).skills

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
    t.match(await legacyIndexOf('long'), [{ name: 'long', files: ['SKILL.md', 'b.md'], version: (await service.skills.manifest('long')).revision }])
    const read = async (path: string) => await service.fetch(`/skills/long/.well-known/skills/${path}`)
    const { text, headers } = await read('long/b.md')
    t.strictSame([text, headers.get('content-type')], ['b', 'text/markdown; charset=utf-8'])
    for (const path of ['long/c.md', 'alone/SKILL.md', 'nope/SKILL.md', 'long/.env', 'long/']) t.equal((await read(path)).status, 404, path)
  })

  t.test('the version of an entry changes with any file', async (t) => {
    const versionOf = async () => (await legacyIndexOf('more'))[0]?.version
    const before = await versionOf()
    writeFileSync(join(service.root, 'more/docs/x.md'), 'y')
    t.not(await versionOf(), before)
  })

  for (const name of ['alone', 'more']) {
    t.test(`skills add URL/skills/${name} installs this skill alone`, async (t) => {
      const { succeeded, output, folder } = await installSkills(`${service.url}/skills/${name}`, { cli, cwd: t.testdir() })
      t.ok(succeeded, output)
      t.same(existsSync(folder) ? readdirSync(folder) : [], [name])
      t.same(differences(join(service.root, name), join(folder, name)), [])
    })
  }
})

t.test('the indexes of one skill are of its present state', async (t) => {
  const service = await buildService(t, { files: { demo: skill('demo') } })
  const digestNow = async () => ((await service.fetch('/skills/demo/.well-known/agent-skills/index.json')).json() as DiscoveryIndex).skills[0]?.digest
  const before = await digestNow()
  writeFileSync(join(service.root, 'demo/SKILL.md'), `${skillText('demo')}More\n`)
  t.not(await digestNow(), before)
})
