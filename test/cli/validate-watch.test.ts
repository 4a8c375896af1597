import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runOnChanges } from '../../src/validate/watch.ts'
import { launch } from '../helper/process.ts'
import { skill, skillText } from '../helper/skills.ts'

t.test('K79: --watch reports again after each change, and ends with the exit code of the last report', async (t) => {
  const cwd = t.testdir({ skills: { good: skill('good') } })
  const running = launch(t, { args: ['validate', '--watch'], cwd })
  await running.printed(/1 skill: no findings; about .*\nwaiting for changes\n/)
  mkdirSync(join(cwd, 'skills/bad'))
  writeFileSync(join(cwd, 'skills/bad/SKILL.md'), '---\nname: other\ndescription: x\n---\nbody\n')
  await running.printed(/2 skills: 1 error; about .*\nwaiting for changes\n/)
  process.kill(running.pid, 'SIGINT')
  t.match(await running.ended, { code: 1, stderr: '' })
})

t.test('a folder that takes the place of another one is watched', async (t) => {
  const cwd = t.testdir({ skills: { good: skill('good') }, other: skill('good') })
  const stop = new AbortController()
  let runs = 0
  let told = (): void => {}
  const next = async (): Promise<void> => { await new Promise<void>((resolve) => { told = resolve }) }
  const ended = runOnChanges(['skills', 'missing'], cwd, async () => {
    runs++
    told()
  }, stop.signal)
  await next()
  renameSync(join(cwd, 'skills/good'), join(cwd, 'skills/.old'))
  renameSync(join(cwd, 'other'), join(cwd, 'skills/good'))
  await next()
  writeFileSync(join(cwd, 'skills/good/SKILL.md'), skillText('good', 'Again.\n'))
  await next()
  stop.abort()
  await ended
  t.ok(runs >= 3)
})
