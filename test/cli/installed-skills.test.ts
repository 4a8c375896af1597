import { execFile } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { startProcess } from '../helper/process.ts'
import { skill } from '../helper/skills.ts'

const cli = fileURLToPath(new URL('../../node_modules/skills/bin/cli.mjs', import.meta.url))

t.test('K4: a folder that `npx skills add` has filled is served', async (t) => {
  const base = fs.realpathSync(t.testdir({ source: { alpha: skill('alpha', { 'notes.md': 'n' }), beta: skill('beta') }, home: {}, project: { '.claude': {}, '.opencode': {} } }))
  const project = join(base, 'project')
  await promisify(execFile)(process.execPath, [cli, 'add', join(base, 'source'), '-y', '--skill', '*', '--agent', 'claude-code', 'codex', 'opencode'], {
    cwd: project, timeout: 60_000, env: { PATH: process.env['PATH'], HOME: join(base, 'home'), DISABLE_TELEMETRY: '1', DO_NOT_TRACK: '1', CI: '1' }
  })
  const folder = join(project, '.claude/skills')
  t.ok(fs.lstatSync(join(folder, 'alpha')).isSymbolicLink(), 'the installer makes each skill a link')

  const closed = await startProcess(t, { args: [folder] })
  t.strictSame(await (await fetch(`${closed.url}/skills`)).json(), { skills: [] })
  const { roots } = await (await fetch(`${closed.url}/readyz`)).json() as { readonly roots: unknown }
  t.match(roots, [{ skills: 0, skipped: 2 }])
  const skips = closed.log().filter(({ setting }) => setting !== undefined)
  t.match(skips.map(({ name }) => name), ['alpha', 'beta'])
  t.match(skips.map(({ setting }) => setting), ['alpha', 'beta'].map((name) => `--allow-links ${join(project, '.agents/skills', name)}`))
  await closed.stop()

  const served = await startProcess(t, { args: [folder, '--allow-links', join(project, '.agents/skills')] })
  t.strictSame(await (await fetch(`${served.url}/skills`)).json(), { skills: ['alpha', 'beta'] })
  t.equal(await (await fetch(`${served.url}/skills/alpha/files/notes.md`)).text(), 'n')
})
