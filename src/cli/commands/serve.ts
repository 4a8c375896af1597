import { startServer } from '../../server.ts'
import type { RunCommand } from '../command.ts'
import { readConfig } from '../folders.ts'
import { EXAMPLE_SKILLS, readCommit, readPackageVersion } from '../../operator/package-files.ts'

/** Starts the service. Signals stop it later, so there is no exit code yet. */
export const run: RunCommand = async (args, context) => {
  const { env } = context
  const config = await readConfig(args, context, EXAMPLE_SKILLS)
  await startServer(config, {
    version: readPackageVersion(),
    commit: readCommit(),
    env,
    isExample: config.skillsDirs[0] === EXAMPLE_SKILLS && args.positionals.length === 0 && !env['SKILLS_DIR']
  })
  return undefined
}
