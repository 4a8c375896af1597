import { settingFlags } from '../../config/load.ts'
import { counted } from '../../core/shared/text.ts'
import { failureOf } from '../../sources/source-error.ts'
import { type Command, CommandError } from '../command.ts'
import { readConfig } from '../folders/read-config.ts'
import { showing } from '../progress.ts'

const FLAGS = settingFlags().filter((flag) => ['personal', 'config', 'state-dir', 'layout', 'trust'].includes(flag))

/** For init containers: the service that starts afterwards has everything, and waits for no network. */
export const command: Command = {
  summary: 'fetches sources into the state folder, and ends',
  positionals: '[DIR...]',
  flags: FLAGS,
  switches: ['once'],
  details: () => `DIR is an address; without any, the sources are those that serve would take (${FLAGS.map((flag) => `--${flag}`).join(', ')} and their variables).

  --once  what it does anyway, for those who write it down

Prints a line for each source as it is done. Exits with 0 when all of them have delivered, with 1 when one that is not optional has not:
what it had delivered before stays. A state that is not signed as the trust file asks is not taken.
`,
  async run ({ positionals, flags }, { env, cwd, print, progress }) {
    const config = await readConfig(positionals, { flags }, { env, cwd })
    const [{ openRoots }, { openTrust }, { SILENT }] = await Promise.all([import('../../config/roots.ts'), import('../../trust/trust.ts'), import('../../core/shared/log.ts')])
    const roots = await openRoots(config, { log: SILENT, env })
    const { sources } = roots
    if (sources === undefined) throw new CommandError('there is nothing to fetch: give an address, or --config FILE with sources that are no folders')
    let trust: Awaited<ReturnType<typeof openTrust>>
    try {
      // A lock keeps no state from being published.
      trust = await openTrust({ lockFile: undefined, trustFile: config.trustFile }, roots, SILENT)
      // A minute without a word looks like a program that hangs.
      await sources.sync(showing(progress, 'source'), ({ name, error, revision, skills }) => {
        const delivered = [revision ?? [], counted(skills, 'skill')].flat().join(', ')
        print(`${error === undefined ? `${name}: ${delivered}` : failureOf(name, error)}\n`)
      })
      return sources.failure === undefined ? 0 : 1
    } finally {
      await trust?.close()
      await sources.close()
    }
  }
}
