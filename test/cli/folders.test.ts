import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CommandError } from '../../src/cli/command.ts'
import { COMMANDS } from '../../src/cli/commands.ts'
import { checkSkillsFolder } from '../../src/cli/folders/check-folder.ts'

t.test('K82, K3: a path is a folder, there or not, and a bare word is one when it is there', async (t) => {
  const cwd = t.testdir({ skills: { demo: { 'SKILL.md': '' } }, odd: { 'SKILL.md': { 'SKILL.md': '' } }, file: '', link: t.fixture('symlink', 'skills') })
  for (const text of ['skills', 'link', 'odd', '.', '..', './skills', 'skills/', './missing', 'missing/', 'a/b', join(cwd, 'missing'), './file', 'file/x', './serve']) {
    await t.resolves(checkSkillsFolder(text, cwd, COMMANDS), text)
  }
})

t.test('K82: a link to a skill is a skill, a dangling link is no folder', async (t) => {
  const cwd = t.testdir({ skills: { demo: { 'SKILL.md': '' } } })
  symlinkSync('skills/demo', join(cwd, 'demo'))
  symlinkSync('nowhere', join(cwd, 'dangling'))
  await t.rejects(checkSkillsFolder('demo', cwd, COMMANDS), CommandError)
  await t.rejects(checkSkillsFolder('dangling', cwd, COMMANDS), CommandError)
})
