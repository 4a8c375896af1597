import { mkdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { reasonOf } from '../../config/files/files.ts'
import { quote } from '../../config/setting.ts'
import { isValidName } from '../../core/format/fields.ts'
import { errorCode } from '../../core/shared/system-errors.ts'
import { CommandError, type RunCommand } from '../command.ts'

const template = (name: string): string => `---
name: ${name}
description: Counts the words of a text. Use when somebody asks how long a text is.
---

# ${name.split('-').join(' ')}

Replace this text: what the skill does, step by step, as you would tell a colleague. Details that are needed now and
then belong into files next to this one, and what a program does better into a script.

1. Count the words with \`wc -w FILE\`.
2. Say how many there are, and whether the text is longer than a page of 500 words.
`

/** Writes a new, valid skill from a template. */
export const run: RunCommand = async ({ positionals: [path = ''] }, { cwd, print }) => {
  const folder = resolve(cwd, path)
  const name = basename(folder)
  if (!isValidName(name)) {
    const rule = 'up to 64 letters a to z, digits and single hyphens'
    throw new CommandError(`${quote(name)} cannot be the name of a skill: ${rule}`)
  }
  const file = join(folder, 'SKILL.md')
  try {
    await mkdir(dirname(folder), { recursive: true })
    await mkdir(folder)
    await writeFile(file, template(name))
  } catch (error) {
    const isThere = errorCode(error) === 'EEXIST'
    if (isThere) throw new CommandError(`${quote(path)} is there already: init writes new skills only`)
    throw new CommandError(`${quote(path)} cannot be written (${reasonOf(error)})`)
  }
  const parent = relative(cwd, dirname(folder)) || '.'
  print(`${relative(cwd, file)}\n\n`)
  print(`Next: skillserve validate ${relative(cwd, folder)}, and skillserve dev ${parent}\n`)
  return 0
}
