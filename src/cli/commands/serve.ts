import { startServer } from '../../server.ts'
import type { RunCommand } from '../command.ts'
import { defaultsOf, readConfig } from '../folders.ts'
import { readCommit, readPackageVersion } from '../package-files.ts'

/** Starts the service, which then stops the process by itself. */
export const run: RunCommand = async (args, context) => {
  const { env, cwd, endBySignal } = context
  endBySignal?.(0)
  const more = defaultsOf(cwd)
  const config = await readConfig(args, context, more)
  const isNamed = args.positionals.length > 0 || Boolean(env['SKILLS_DIR']) || config.skillsDirs.length === 0
  await startServer(config, {
    version: readPackageVersion(),
    commit: readCommit(),
    env,
    isExample: more.defaults !== undefined && !isNamed,
    takeSignals: (takes) => { endBySignal?.(takes ? undefined : 1) }
  })
  return undefined
}
