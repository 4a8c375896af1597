import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { reasonOf } from '../../operator/files.ts'
import { ConfigError, quote } from '../../operator/setting.ts'
import { isValidName } from '../../core/format/fields.ts'
import { errorCode } from '../../core/shared/system-errors.ts'
import type { RunCommand } from '../command.ts'

const FILES = {
  'SKILL.md': (name: string) => `---
name: ${name}
description: Counts the words of a text file. Use when somebody asks how long a text is.
---

# ${name.split('-').join(' ')}

Replace this text: what the skill does, step by step, as you would tell a colleague.

1. Run \`scripts/count.sh FILE\` to count the words of a file.
2. Read [references/limits.md](references/limits.md) before you say whether a text is too long.
`,
  'references/limits.md': () => `# Limits

Details that are needed now and then belong here, so that SKILL.md stays short.

- A summary has up to 100 words.
- A page has about 500 words.
`,
  'scripts/count.sh': () => `#!/bin/sh
# Prints the number of words in a file.
set -eu
wc -w < "$1"
`
} as const

/** Writes a new, valid skill from a template, with a reference and a script. */
export const run: RunCommand = async ({ positionals: [path = ''] }, { cwd, print }) => {
  const folder = resolve(cwd, path)
  const name = basename(folder)
  if (!isValidName(name)) {
    const rule = 'up to 64 letters a to z, digits and single hyphens'
    throw new ConfigError(`${quote(name)} cannot be the name of a skill: ${rule}`)
  }
  try {
    await mkdir(folder, { recursive: true })
    if ((await readdir(folder)).length > 0) throw notEmpty(folder)
    for (const [file, textOf] of Object.entries(FILES)) {
      const target = join(folder, file)
      await mkdir(dirname(target), { recursive: true })
      await writeFile(target, textOf(name), { mode: file.endsWith('.sh') ? 0o755 : 0o644, flag: 'wx' })
      print(`${relative(cwd, target)}\n`)
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error
    if (errorCode(error) === 'EEXIST') throw notEmpty(folder)
    throw new ConfigError(`${quote(path)} cannot be written (${reasonOf(error)})`)
  }
  const parent = relative(cwd, dirname(folder)) || '.'
  print(`\nNext: skillserve validate ${relative(cwd, folder) || '.'}, and skillserve dev ${parent}\n`)
  return 0
}

function notEmpty (folder: string): ConfigError {
  return new ConfigError(`${quote(basename(folder))} is not an empty folder: init writes new skills only`)
}
