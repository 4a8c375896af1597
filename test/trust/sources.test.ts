import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openRoots } from '../../src/config/roots.ts'
import { SILENT } from '../../src/core/shared/log.ts'
import { loadPolicy } from '../../src/trust/load-policy.ts'
import { openPolicy } from '../../src/trust/open-policy.ts'
import { createRepository, skillFiles } from '../helper/git.ts'
import { makeKeyPair, sign } from '../helper/signing.ts'
import { skill, skillText, startManager, until } from '../helper/skills.ts'
import { openSources, sourceAt } from '../helper/sources.ts'

t.test('K95: of a source that must be signed, only a signed state is published, as a whole', async (t) => {
  const repository = createRepository(t)
  const keys = makeKeyPair()
  const signed = async (...names: readonly string[]) => {
    for (const name of names) await sign(join(repository.path, 'skills', name), keys)
    return repository.commit({})
  }
  mkdirSync(join(repository.path, 'skills'), { recursive: true })
  repository.commit(skillFiles('a', 'b'))
  const first = await signed('a', 'b')
  const trust = join(t.testdirName, 'trust.yaml')
  writeFileSync(join(t.testdirName, 'key.pub'), keys.publicPem)
  writeFileSync(trust, 'signers:\n  - name: team\n    key: key.pub\nroots:\n  repo: require\n')
  const policy = await openPolicy({ trustFile: trust }, ['repo'], SILENT)
  t.teardown(() => { policy.close() })
  const followers = policy.files.map((file) => t.capture(file, 'on'))
  const { sources, status, skills } = await openSources(t, [sourceAt(`git+file://${repository.path}`)], { guard: (candidate) => policy.approve(candidate) })
  t.match(status(), { state: 'ok', revision: `main@sha1:${first}`, skills: 2 })

  const unsigned = repository.commit({ 'skills/a/SKILL.md': skillText('a', 'Changed by somebody.\n'), 'skills/b/more.txt': 'x' })
  await sources.sync()
  t.match(status(), { state: 'stale', revision: `main@sha1:${first}`, error: { code: 'verification_failed' } })
  t.match(status().error?.message, `main@sha1:${unsigned} is refused: the skill "a": `, 'which commit, which skill, and why')
  t.match((await skills.readMainFile('a', 'SKILL.md')).utf8, /Instructions of a/)

  const second = await signed('a', 'b')
  await sources.sync()
  t.match(status(), { state: 'ok', revision: `main@sha1:${second}`, failing_since: undefined })
  t.match((await skills.readMainFile('a', 'SKILL.md')).utf8, /Changed by somebody/)

  cpSync(join(repository.path, 'skills/a'), join(repository.path, 'skills/c'), { recursive: true })
  repository.commit({ 'skills/c/SKILL.md': skillText('c') })
  await sources.sync()
  t.match(status(), { state: 'stale', skills: 2 }, 'a new skill without a signature of its own')
  rmSync(join(repository.path, 'skills/c'), { recursive: true })
  repository.commit({})
  await sources.sync()
  t.match(status(), { state: 'ok' })
  t.strictSame(followers.flatMap((calls) => calls()), [], 'no state that was judged is still told of new trust files')
})

t.test('K95: a rule for a name holds for every source and folder of that name', async (t) => {
  const { publicPem } = makeKeyPair()
  const folder = t.testdir({
    'trust.yaml': 'signers:\n  - { name: team, key: key.pub }\nroots: { skills: require, skills-2: report }\n',
    'key.pub': publicPem,
    a: { skills: { a: skill('a') } },
    b: { skills: { b: skill('b') } },
    c: { skills: { c: skill('c') } },
    'skills-2': { d: skill('d') }
  })
  const skillsDirs = ['a/skills', 'b/skills', 'c/skills'].map((path) => join(folder, path))
  writeFileSync(join(folder, 'config.yaml'), JSON.stringify({ sources: [{ folder: 'skills-2' }] }))
  const roots = await openRoots({ skillsDirs, configFile: join(folder, 'config.yaml'), layout: 'tree', stateDir: '/nowhere', personalDir: undefined }, { log: SILENT, env: {} })
  t.teardown(() => roots.sources?.close())
  t.strictSame(roots.projectRoots.map(({ name }) => name), ['skills', 'skills-3', 'skills-4', undefined], 'a number makes no name of another root')
  const policy = await loadPolicy({ lockFile: undefined, trustFile: join(folder, 'trust.yaml') }, roots, SILENT)
  t.teardown(() => { policy?.close() })
  const skills = await startManager(t, roots.projectRoots, { ...policy && { policy } })
  t.strictSame(await skills.list(), ['d'])
})

t.test('K95: a key that goes away is remarked on until it is back', async (t) => {
  const { publicPem } = makeKeyPair()
  const folder = t.testdir({ 'trust.yaml': 'signers:\n  - { name: team, key: key.pub }\n', 'key.pub': publicPem })
  const policy = await openPolicy({ trustFile: join(folder, 'trust.yaml') }, ['repo'], SILENT)
  t.teardown(() => { policy.close() })
  t.equal(policy.remark(), undefined)
  rmSync(join(folder, 'key.pub'))
  await until(() => policy.remark() !== undefined)
  t.match(policy.remark(), /^the trust file cannot be used as it is/)
  writeFileSync(join(folder, 'key.pub'), publicPem)
  await until(() => policy.remark() === undefined)
})
