import { openRoots } from '../../config/roots.ts'
import { SILENT } from '../../core/shared/log.ts'
import { counted } from '../../core/shared/text.ts'
import { failureOf } from '../../sources/source-error.ts'
import { openTrust, type Trust } from '../../trust/trust.ts'
import { CommandError, type RunCommand } from '../command.ts'
import { readConfig, settingSources } from '../folders.ts'

/** For init containers: the service that starts afterwards has everything, and waits for no network. */
export const run: RunCommand = async (args, context) => {
  const { env, print } = context
  const config = await readConfig(settingSources(args, context), context)
  const roots = await openRoots(config, { log: SILENT, env })
  const { sources } = roots
  if (sources.status.length === 0) {
    throw new CommandError(
      'there is nothing to fetch: give an address, or --config FILE with sources other than folders'
    )
  }
  let trust: Trust | undefined
  try {
    // A lock keeps no state from being published.
    trust = await openTrust({ trustFile: config.trustFile }, roots, SILENT)
    // A minute without a word looks like a program that hangs.
    await sources.sync(({ name, error, revision, skills }) => {
      const delivered = [revision ?? [], counted(skills, 'skill')].flat().join(', ')
      print(`${error === undefined ? `${name}: ${delivered}` : failureOf(name, error)}\n`)
    })
    return sources.failure === undefined ? 0 : 1
  } finally {
    await trust?.close()
    await sources.close()
  }
}
