import { resolve } from 'node:path'
import { settingFlags } from '../../config/load.ts'
import { type Command, CommandError } from '../command.ts'
import { readConfig } from '../folders/read-config.ts'

/** Answers an operator's two questions about an access file, without a running service. */
export const command: Command = {
  summary: 'says who sees what by an access file',
  positionals: 'FILE [DIR...]',
  flags: ['as', 'skill', ...settingFlags()],
  details: () => `  --as NAME        lists what the holder of this token or link sees, and by which rule; anonymous for callers without credentials, group:G for members of G
  --skill SKILL    lists who sees this skill, in each folder that has it

Folders are those of serve: arguments, SKILLS_DIR, --config, or ./skills. Without a question, checks the file.
Exits with 1 when the file cannot be used, or there is no such token, link or skill.
`,
  async run ({ positionals: [file, ...folders], flags }, { env, cwd, print }) {
    if (file === undefined) throw new CommandError('access takes an argument, the access file')
    const asked = flags.get('as')?.at(-1)
    const skill = flags.get('skill')?.at(-1)
    if (asked !== undefined && skill !== undefined) throw new CommandError('access takes --as or --skill, not both')
    const config = await readConfig(folders, { flags }, { env, cwd })
    const { reportAccess } = await import('../../access/report.ts')
    const lines = await reportAccess(config, resolve(cwd, file), asked !== undefined ? { caller: asked } : skill !== undefined ? { skill } : {}, env)
    print(lines.map((line) => `${line}\n`).join(''))
    return 0
  }
}
