import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runCommandLine } from '../../src/cli/run.ts'
import { createRepository, skillFiles } from '../helper/git.ts'
import { skillText } from '../helper/skills.ts'

async function run (cwd: string, ...argv: string[]) {
  let [stdout, stderr] = ['', '']
  const code = await runCommandLine(argv, { env: { STATE_DIR: join(cwd, 'state') }, cwd, print: (text) => { stdout += text } }, (text) => { stderr += text })
  return { code, stdout, stderr }
}

t.test('K83: wherever a folder can be given, so can a source', async (t) => {
  const repository = createRepository(t)
  const commit = repository.commit({ ...skillFiles('a', 'b'), 'skills/b/SKILL.md': '---\nname: b\n---\n' })
  const address = `git+file://${repository.path}`
  const cwd = t.testdirName
  t.strictSame(await run(cwd, 'sync', '--once', address), { code: 0, stdout: `repo: main@sha1:${commit}, 2 skills\n`, stderr: '' })
  t.match(await run(cwd, 'validate', address), { code: 1, stdout: /repo\/b/ })
  t.match(await run(cwd, 'validate', address, '--fix'), { code: 2, stderr: /--fix is for folders/ })
  t.match(await run(cwd, 'lock', address), { code: 0, stdout: 'skills.lock: 2 skills\n' })
  t.match(readFileSync(join(cwd, 'skills.lock'), 'utf8'), /"a": sha256:/)
  t.match(await run(cwd, 'verify', address, '--locked', 'skills.lock'), { code: 0, stdout: /ok {7}"a"/ })
  t.match(await run(cwd, 'export', 'out', `${address}#main:skills`), { stdout: /1 skill in|2 skills in/ })
  t.ok(existsSync(join(cwd, 'out/.well-known')))

  writeFileSync(join(cwd, 'sources.yaml'), `sources:\n  - git: file://${repository.path}\n    name: team\n  - git: file://${repository.path}-none\n    name: none\n    optional: true\n`)
  t.match(await run(cwd, 'sync', '--config', 'sources.yaml'), { code: 0, stdout: /team: main@.*\nnone: not_found: / }, 'one that is optional may fail')
  rmSync(repository.path, { recursive: true })
  t.match(await run(cwd, 'sync', address), { code: 1, stdout: /repo: not_found/ })
  t.match(await run(cwd, 'lock', address), { code: 1, stderr: /the source repo cannot be read: the host has no such repository/ }, 'no lock of what may be old')
  t.match(await run(cwd, 'sync'), { code: 1, stderr: /nothing to fetch/ })
})

t.test('K86: a folder that is a skill is one with the layout single', async (t) => {
  const cwd = t.testdir({ mine: { 'SKILL.md': skillText('mine') } })
  t.match(await run(cwd, 'lock', './mine'), { code: 1, stderr: /is itself a skill/ })
  t.match(await run(cwd, 'lock', './mine', '--layout', 'single'), { code: 0, stdout: 'skills.lock: 1 skill\n' })
  t.match(readFileSync(join(cwd, 'skills.lock'), 'utf8'), /"mine": sha256:/)
})
