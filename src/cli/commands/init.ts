import { mkdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { reasonOf } from '../../operator/files.ts'
import { ConfigError, quote } from '../../operator/setting.ts'
import { isValidName } from '../../core/format/fields.ts'
import { errorCode } from '../../core/shared/system-errors.ts'
import type { RunCommand } from '../command.ts'

const template = (name: string): string => `---
name: ${name}
description: Counts the words of a text file. Use when somebody asks how long a text is.
---

# ${name.split('-').join(' ')}

Replace this text: what the skill does, step by step, as you would tell a colleague.

1. Run \`wc -w FILE\` to count the words of a file.
2. Compare: a summary has up to 100 words, a page about 500.

Details that are needed now and then belong in \`references/\`, programs in \`scripts/\`, with a link to each from here.
`

/** Writes a new, valid skill from a template. */
export const run: RunCommand = async ({ positionals: [path = ''] }, { cwd, print }) => {
  const folder = resolve(cwd, path)
  const name = basename(folder)
  if (!isValidName(name)) {
    const rule = 'up to 64 letters a to z, digits and single hyphens'
    throw new ConfigError(`${quote(name)} cannot be the name of a skill: ${rule}`)
  }
  try {
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'SKILL.md'), template(name), { flag: 'wx' })
    print(`${relative(cwd, join(folder, 'SKILL.md'))}\n`)
  } catch (error) {
    if (errorCode(error) === 'EEXIST') {
      throw new ConfigError(`${quote(path)} is there already: init writes new skills only`)
    }
    throw new ConfigError(`${quote(path)} cannot be written (${reasonOf(error)})`)
  }
  const parent = relative(cwd, dirname(folder)) || '.'
  print(`\nNext: skillserve validate ${relative(cwd, folder) || '.'}, and skillserve dev ${parent}\n`)
  return 0
}
