import { ConfigError } from '../../operator/setting.ts'
import { counted } from '../../core/shared/text.ts'
import { Shutdown } from '../../http/shutdown.ts'
import { openSkills } from '../../open-skills.ts'
import { failureOf } from '../../sources/source-error.ts'
import type { RunCommand } from '../command.ts'
import { readConfig } from '../folders.ts'

/** For init containers: the service that starts afterwards has everything, and waits for no network. */
export const run: RunCommand = async (args, context) => {
  const { env, print, warn } = context
  const config = await readConfig(args, context)
  const shutdown = new Shutdown()
  try {
    // A lock keeps no state from being published.
    const { roots: { sources } } = await openSkills({ ...config, lockFile: undefined }, { env, shutdown })
    if (sources.status.length === 0) {
      throw new ConfigError('nothing to sync: folders are not fetched. Give a source address or --config FILE')
    }
    // A minute without a word looks like a program that hangs.
    await sources.sync(({ name, error, revision, skills }) => {
      if (error !== undefined) warn(failureOf(name, error))
      else print(`${name}: ${revision === undefined ? '' : `${revision}, `}${counted(skills, 'skill')}\n`)
    })
    return sources.failure === undefined ? 0 : 1
  } finally {
    await shutdown.close()
  }
}
