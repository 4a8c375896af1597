import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runOnChanges } from '../../src/validate/watch.ts'
import { launch } from '../helper/process.ts'
import { skill, skillText } from '../helper/skills.ts'

t.test('K79: --watch reports again after each change, whatever becomes of the folder, and ends with the exit code of ' +
  'the last report', async (t) => {
  const cwd = t.testdir({ skills: { good: skill('good') } })
  const running = launch(t, { args: ['validate', '--watch'], cwd })
  await running.printed(/1 skill: no findings; about .*\nwaiting for changes\n/)
  rmSync(join(cwd, 'skills'), { recursive: true })
  await running.printed(/'\.\/skills' cannot be read: ENOENT[^\n]*\nwaiting for changes\n/)
  mkdirSync(join(cwd, 'skills/bad'), { recursive: true })
  writeFileSync(join(cwd, 'skills/bad/SKILL.md'), '---\nname: other\ndescription: x\n---\nbody\n')
  await running.printed(/1 skill: 1 error; about .*\nwaiting for changes\n/)
  process.kill(running.pid, 'SIGINT')
  t.match(await running.ended, { code: 1, stdout: /^1 skill/, stderr: '' })
})

t.test('K79: --watch of one SKILL.md reports again when it is saved', async (t) => {
  const cwd = t.testdir({ good: skill('good') })
  const { next, stop } = watchHere(['good/SKILL.md'], cwd)
  await next()
  writeFileSync(join(cwd, 'good/SKILL.md'), skillText('good', 'Again.\n'))
  await next()
  await stop()
})

/** Resolves with each run; a test that waits for one that does not come ends by its deadline. */
function watchHere (paths: readonly string[], cwd: string): { next (): Promise<void>, stop (): Promise<void> } {
  const abort = new AbortController()
  let told = (): void => {}
  const ended = runOnChanges(paths, cwd, async () => { told() }, abort.signal)
  return {
    next: async () => { await new Promise<void>((resolve) => { told = resolve }) },
    async stop () {
      abort.abort()
      await ended
    }
  }
}
