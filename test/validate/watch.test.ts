import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { launch } from '../helper/process.ts'
import { skill } from '../helper/skills.ts'

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
