import { resolve } from 'node:path'
import { reportAccess } from '../../access/report.ts'
import { CommandError, type RunCommand } from '../command.ts'
import { readConfig } from '../folders.ts'

/** Answers an operator's two questions about an access file, without a running service. */
export const run: RunCommand = async ({ positionals: [file = '', ...positionals], flags }, context) => {
  const caller = flags.get('as')?.at(-1)
  const skill = flags.get('skill')?.at(-1)
  if (caller !== undefined && skill !== undefined) throw new CommandError('access takes --as or --skill, not both')
  const config = await readConfig({ positionals, flags }, context)
  const question = caller !== undefined ? { caller } : skill !== undefined ? { skill } : {}
  const lines = await reportAccess(config, resolve(context.cwd, file), question, context.env)
  context.print(lines.map((line) => `${line}\n`).join(''))
  return 0
}
