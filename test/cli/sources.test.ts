import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { runHere } from '../helper/command-line.ts'
import { createRepository, skillFiles } from '../helper/git.ts'
import { makeKeyPair, sign } from '../helper/signing.ts'
import { skillText } from '../helper/skills.ts'

const run = (cwd: string, ...argv: readonly string[]) => runWith({}, cwd, ...argv)

async function runWith (env: Readonly<Record<string, string>>, cwd: string, ...argv: readonly string[]) {
  return await runHere(argv, { cwd, env: { STATE_DIR: join(cwd, 'state'), ...env } })
}

t.test('K83: wherever a folder can be given, so can a source', async (t) => {
  const repository = createRepository(t)
  const commit = repository.commit({ ...skillFiles('a', 'b'), 'skills/b/SKILL.md': '---\nname: b\n---\n' })
  const address = `git+file://${repository.path}`
  const cwd = t.testdirName
  t.strictSame(await run(cwd, 'sync', '--once', address),
    { code: 0, stdout: `repo: main@sha1:${commit}, 2 skills\n`, stderr: '' })
  t.match(await run(cwd, 'validate', address), { code: 1, stdout: /repo\/b/ })
  mkdirSync(join(cwd, 'ci'))
  t.match(await run(cwd, 'validate', address, '--baseline', 'ci/base.json', '--write-baseline'), { code: 0 })
  t.match(JSON.parse(readFileSync(join(cwd, 'ci/base.json'), 'utf8')), { '../repo/b': Array },
    'a skill of a source lies in a folder of its name')
  t.match(await run(cwd, 'validate', address, '--baseline', 'ci/base.json'), { code: 0 })
  t.match(await run(cwd, 'validate', address, '--fix'), { code: 2, stderr: /--fix is for folders/ })
  t.match(await run(cwd, 'lock', address), { code: 0, stdout: 'skills.lock: 2 skills\n' })
  t.match(readFileSync(join(cwd, 'skills.lock'), 'utf8'), /"a": sha256:/)
  t.match(await run(cwd, 'verify', address, '--locked', 'skills.lock'), { code: 0, stdout: /ok {7}"a"/ })
  t.match(await run(cwd, 'export', 'out', `${address}#main:skills`), { stdout: /1 skill in|2 skills in/ })
  t.ok(existsSync(join(cwd, 'out/.well-known')))

  writeFileSync(join(cwd, 'access.yaml'), 'rules:\n  - { groups: [docs], roots: [repo], skills: [a] }\n')
  const asked = ['access', 'access.yaml', address, '--as', 'group:docs', '--state-dir', join(cwd, 'other')] as const
  t.match(await run(cwd, ...asked), { code: 0, stdout: /and sees 1 skill\na {2}repo {2}/ })

  writeFileSync(join(cwd, 'sources.yaml'),
    `sources:\n  - git: file://${repository.path}\n    name: team\n  - git: file://${repository.path}-none\n    name: none\n    optional: true\n`)
  t.match(await run(cwd, 'sync', '--config', 'sources.yaml'),
    { code: 0, stdout: /^(?=[^]*^team: main@)[^]*^the source none cannot be read: [^\n]+ \(not_found\)$/m },
    'one that is optional may fail')
  const leftOut = 'the source none cannot be read: there is no such repository, or the service may not read it ' +
    '(not_found); it is optional, so the command goes on without it\n'
  t.match(await run(cwd, 'lock', '--config', 'sources.yaml'),
    { code: 0, stdout: 'skills.lock: 2 skills\n', stderr: leftOut }, 'for lock too, which says so')
  t.match(await run(cwd, 'export', 'again', '--config', 'sources.yaml'), { stdout: /1 skill in /, stderr: leftOut })
  rmSync(repository.path, { recursive: true })
  t.match(await run(cwd, 'lock', '--config', 'sources.yaml'),
    { code: 1, stderr: /^[^\n]*the source team cannot be read/ })
  writeFileSync(join(cwd, 'sources.yaml'),
    `sources:\n  - git: file://${repository.path}\n    name: team\n    optional: true\n`)
  t.match(await run(cwd, 'lock', '--config', 'sources.yaml'),
    { code: 0, stdout: 'skills.lock: 2 skills\n', stderr: /^skillserve: the source team cannot be read: [^\n]*\(not_found\); it is optional, so its last state counts\n$/ })
  writeFileSync(join(cwd, 'sources.yaml'), `sources:\n  - git: file://${repository.path}-none\n    optional: true\n`)
  t.match(await run(cwd, 'lock', '--config', 'sources.yaml'),
    { code: 1, stderr: /goes on without it\n[^\n]*there are no skills\n$/ })
  t.match(await run(cwd, ...asked), { code: 1, stderr: /the source repo cannot be read: / },
    'a file is not validated by skills that are not there')
  t.match(await run(cwd, 'sync', address),
    { code: 1, stdout: /^the source repo cannot be read: there is no such repository, or the service may not read it \(not_found\)\n$/ })
  t.match(await run(cwd, 'lock', address),
    { code: 1, stderr: /the source repo cannot be read: there is no such repository, or the service may not read it \(not_found\)$/m }, 'no lock of what may be old')
  t.match(await run(cwd, 'sync'), {
    code: 1, stderr: /nothing to sync: folders are not fetched\. Give a source address or --config FILE\n$/
  })
  t.match(await run(cwd, 'export', 'out', address, '--trust', 'none.yaml'),
    { code: 1, stderr: /TRUST_FILE or --trust/ })
  const left = readdirSync(join(cwd, 'state'), { recursive: true, encoding: 'utf8' })
  t.notOk(left.some((path) => basename(path) === 'lock'), 'whatever fails, others may use the state folder')
})

t.test('K95: sync publishes no state with a skill that is not signed as the trust file asks', async (t) => {
  const repository = createRepository(t)
  const keys = makeKeyPair()
  mkdirSync(join(repository.path, 'skills'), { recursive: true })
  repository.commit(skillFiles('a'))
  await sign(join(repository.path, 'skills/a'), keys)
  const signed = repository.commit({})
  const address = `git+file://${repository.path}`
  const cwd = t.testdirName
  writeFileSync(join(cwd, 'key.pub'), keys.publicPem)
  writeFileSync(join(cwd, 'trust.yaml'), 'signers:\n  - { name: team, key: key.pub }\nroots: { repo: require }\n')
  t.strictSame(await run(cwd, 'sync', '--trust', 'trust.yaml', address),
    { code: 0, stdout: `repo: main@sha1:${signed}, 1 skill\n`, stderr: '' })

  const unsigned = repository.commit({ 'skills/a/SKILL.md': skillText('a', 'Changed by somebody.\n') })
  const refusal = {
    code: 1,
    stdout: new RegExp(
      `^the source repo cannot be read: main@sha1:${unsigned} is refused: the skill "a": [^\\n]+ \\(verification_failed\\)\\n$`),
    stderr: ''
  }
  t.match(await run(cwd, 'sync', '--trust', 'trust.yaml', address), refusal)
  t.match(await runWith({ TRUST_FILE: 'trust.yaml' }, cwd, 'sync', address), refusal, 'by the variable')
  t.match(await run(cwd, 'sync', '--trust', 'none.yaml', address),
    { code: 1, stdout: '', stderr: /^skillserve: TRUST_FILE or --trust: [^\n]+\n$/ })
})

t.test('K86: a folder that is a skill is one with the layout single', async (t) => {
  const cwd = t.testdir({ mine: { 'SKILL.md': skillText('mine') } })
  t.match(await run(cwd, 'sync', './mine'), { code: 1, stderr: /is itself a skill/ })
  t.match(await run(cwd, 'lock', './mine', '--layout', 'single'), { code: 0, stdout: 'skills.lock: 1 skill\n' })
  t.match(readFileSync(join(cwd, 'skills.lock'), 'utf8'), /"mine": sha256:/)
})
