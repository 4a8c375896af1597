import { ConfigError } from '../../operator/setting.ts'
import { counted } from '../../core/shared/text.ts'
import { Shutdown } from '../../http/shutdown.ts'
import { openSkills } from '../../open-skills.ts'
import { failureOf } from '../../sources/source-error.ts'
import type { RunCommand } from '../command.ts'
import { readConfig } from '../folders.ts'

/** Fetches all sources, for init containers: the service that starts afterwards needs no network. */
export const run: RunCommand = async (args, context) => {
  const { env, print, warn } = context
  const config = await readConfig(args, context)
  const shutdown = new Shutdown()
  try {
    // Sources are published whether a lock allows them or not.
    const { roots: { sources } } = await openSkills({ ...config, lockFile: undefined }, { env, shutdown })
    if (sources.status.length === 0) {
      throw new ConfigError('nothing to sync: folders are not fetched. Give a source address or --config FILE')
    }
    // Each source is reported when it is done, since a silent minute looks like a hang.
    await sources.sync(({ name, error, revision, skills }) => {
      if (error !== undefined) warn(failureOf(name, error))
      else print(`${name}: ${revision === undefined ? '' : `${revision}, `}${counted(skills, 'skill')}\n`)
    })
    return sources.failure === undefined ? 0 : 1
  } finally {
    await shutdown.close()
  }
}
