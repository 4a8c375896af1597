import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { settingFlags, settingsWithoutValue } from '../../config/load.ts'
import { SETTINGS } from '../../config/settings.ts'
import type { Command } from '../command.ts'
import { readConfig } from '../folders/read-config.ts'
import { EXAMPLE_SKILLS, readPackageVersion } from '../package-files.ts'
import { settingsHelp } from '../settings-help.ts'

/** Starts the service, which then stops the process by itself. */
export const command: Command = {
  summary: 'serves folders of skills over HTTP (the default)',
  positionals: '[DIR...]',
  flags: settingFlags(),
  optionalFlags: settingsWithoutValue(),
  details: () => `${settingsHelp()}
Exits with 0 after SIGTERM or SIGINT, with 1 for a setting that cannot be used and after an error that nobody handled.
`,
  async run ({ positionals, flags }, { commands, env, cwd, endBySignal }) {
    endBySignal?.(0)
    const hasDefaultFolder = existsSync(resolve(cwd, SETTINGS.skillsDirs.default))
    const config = await readConfig(positionals, { flags }, { env, cwd }, { commands, ...!hasDefaultFolder && { defaults: { skillsDirs: EXAMPLE_SKILLS } } })
    const { startServer } = await import('../../server.ts')
    const isExample = !hasDefaultFolder && positionals.length === 0 && !env['SKILLS_DIR'] && config.skillsDirs.length > 0
    await startServer(config, { version: readPackageVersion(), env, isExample, takeSignals: (takes) => { endBySignal?.(takes ? undefined : 1) } })
    return undefined
  }
}
