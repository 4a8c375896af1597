import { startServer } from '../../server.ts'
import type { RunCommand } from '../command.ts'
import { readConfig, settingSources } from '../folders.ts'
import { EXAMPLE_SKILLS, readCommit, readPackageVersion } from '../package-files.ts'

/** Starts the service, which then stops the process by itself. */
export const run: RunCommand = async (args, context) => {
  const { env, endBySignal } = context
  endBySignal?.(0)
  const sources = settingSources(args, context, EXAMPLE_SKILLS)
  const config = await readConfig(sources, context)
  await startServer(config, {
    version: readPackageVersion(),
    commit: readCommit(),
    env,
    isExample: sources.defaultFolder === EXAMPLE_SKILLS && args.positionals.length === 0 && !env['SKILLS_DIR'],
    takeSignals: (takes) => { endBySignal?.(takes ? undefined : 1) }
  })
  return undefined
}
