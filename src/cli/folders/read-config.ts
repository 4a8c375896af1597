import { type ConfigSources, loadConfig } from '../../config/load.ts'
import type { Config } from '../../config/settings.ts'
import type { Arguments, CommandContext, CommandTable } from '../command.ts'
import { checkSkillsFolder } from './check-folder.ts'

/**
 * Settings of a command that takes folders as `serve` does. Without a folder, a configuration file says alone which skills there are.
 * @param commands see `checkSkillsFolder`
 * @param defaults in place of those of the settings
 * @throws CommandError, ConfigError
 */
export async function readConfig (
  folders: readonly string[], { flags }: Pick<Arguments, 'flags'>, { env, cwd }: Pick<CommandContext, 'env' | 'cwd'>,
  { commands, ...more }: { readonly commands?: CommandTable } & Pick<ConfigSources, 'defaults'> = {}
): Promise<Config> {
  for (const folder of folders) await checkSkillsFolder(folder, cwd, commands, flags.get('layout')?.at(-1) ?? env['LAYOUT'])
  const config = loadConfig({ positionals: folders, flags, env, cwd, ...more })
  return folders.length === 0 && !env['SKILLS_DIR'] && config.configFile !== undefined ? { ...config, skillsDirs: [] } : config
}
