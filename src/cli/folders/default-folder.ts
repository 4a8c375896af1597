import type { Config } from '../../config/settings.ts'
import type { CommandContext } from '../command.ts'

/** Settings of a command that names no folder: a configuration file then says alone which skills there are. */
export function withoutDefaultFolder (config: Config, folders: readonly string[], env: CommandContext['env']): Config {
  return folders.length === 0 && !env['SKILLS_DIR'] && config.configFile !== undefined ? { ...config, skillsDirs: [] } : config
}
