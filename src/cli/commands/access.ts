import { resolve } from 'node:path'
import { reportAccess } from '../../access/report.ts'
import type { RunCommand } from '../command.ts'
import { readConfig, settingSources } from '../folders.ts'

interface Options {
  readonly as?: string
  readonly skill?: string
}

/** Answers an operator's two questions about an access file, without a running service. */
export const run: RunCommand<Options> = async ({ positionals: [file = '', ...positionals], options }, context) => {
  const { as: caller, skill } = options
  const config = await readConfig(settingSources({ positionals, options }, context), context)
  const question = { ...caller !== undefined && { caller }, ...skill !== undefined && { skill } }
  const lines = await reportAccess(config, resolve(context.cwd, file), question, context.env)
  context.print(lines.map((line) => `${line}\n`).join(''))
  return 0
}
