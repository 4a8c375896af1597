import { existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { type ConfigSources, loadConfig } from '../config/load.ts'
import { ConfigError, didYouMean, quote } from '../operator/setting.ts'
import { type Config, SETTINGS } from '../config/settings.ts'
import { mainFileAmong } from '../core/format/main-files.ts'
import { isOnNetwork } from '../core/read/disk.ts'
import type { SkippedEntry } from '../core/roots/list-root.ts'
import { describeSkipped } from '../operator/skipped.ts'
import { isAddress } from '../sources/address/address.ts'
import type { Sources } from '../sources/sources.ts'
import type { Arguments, CommandContext } from './command.ts'

type ServeContext = Pick<CommandContext, 'cwd' | 'env' | 'commands'>

/**
 * Checks an argument that should be a folder of skills. `./path`, an absolute path or a name with a separator is
 * accepted even if it does not exist. A bare word must exist, since it may be a mistyped command.
 * @param layout with any layout but `flat`, the folder may itself be a skill
 * @throws ConfigError for an unknown word, for a file, and for a folder that is itself a skill
 */
export async function checkSkillsFolder (
  text: string, cwd: string, commands: readonly string[], layout = 'flat'
): Promise<void> {
  const path = resolve(cwd, text)
  // A network disk might never answer, so it is not checked.
  if (isAddress(text) || isOnNetwork(path)) return
  const stats = await stat(path).catch(() => undefined)
  if (stats?.isDirectory() === false) throw new ConfigError(`${quote(text)} is a file, not a folder of skills`)
  const remedy = `To serve a folder that does not exist yet, write ${quote(`./${text}`)}`
  if (stats === undefined && /^[\w-][\w.-]*\/[\w.-]+$/.test(text)) {
    const sentence = `${quote(text)} is not a folder here, and not an address of skills`
    throw new ConfigError(`${sentence}: did you mean ${quote(`github:${text}`)}? ${remedy}`)
  }
  if (stats === undefined && isBareWord(text)) {
    if (commands.includes(text)) throw new ConfigError(`put the command first: skillserve ${text} …`)
    const sentence = `${quote(text)} is not a command, and not a folder here${didYouMean(text, commands)}`
    throw new ConfigError(`${sentence} (commands: ${commands.join(', ')}). ${remedy}`)
  }
  const mainFile = layout === 'flat' ? await mainFileIn(path) : undefined
  if (mainFile === undefined) return
  const parent = join(text, '..')
  throw new ConfigError(`${quote(text)} is itself a skill, with its own ${mainFile}: give its parent folder, ` +
    JSON.stringify(isBareWord(parent) ? `./${parent}` : parent))
}

/** Returns the name of the main file of a folder that is itself a skill. */
export async function mainFileIn (folder: string): Promise<string | undefined> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  return mainFileAmong(entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name))
}

/** Returns whether a folder is itself a skill, or has skills directly below it. */
export async function hasSkills (folder: string): Promise<boolean> {
  if (await mainFileIn(folder) !== undefined) return true
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) {
    if (entry.isDirectory() && await mainFileIn(join(folder, entry.name)) !== undefined) return true
  }
  return false
}

/**
 * Returns the default path of authors' commands: `./skills`, else the skill or the folder of skills that they are in.
 * @throws ConfigError when neither is there
 */
export async function defaultPath (cwd: string): Promise<string> {
  if (existsSync(resolve(cwd, 'skills'))) return 'skills'
  if (await hasSkills(cwd)) return '.'
  throw new ConfigError('there is no ./skills, and no skill here: name a folder of skills, a skill, or a SKILL.md')
}

function isBareWord (text: string): boolean {
  return text !== '.' && text !== '..' && !text.includes('/') && !text.includes(sep)
}

/**
 * Returns where the settings of a command come from that takes folders as `serve` does, and checks of these folders,
 * each of which throws a ConfigError. Without a folder, a configuration file alone names skills.
 * @param examples what is served without a ./skills
 */
export function readArguments (
  { positionals, options }: Arguments<object>, { env, cwd, commands }: ServeContext, examples?: string
): { readonly sources: ConfigSources, readonly checks: ReadonlyArray<() => Promise<void>> } {
  const given: Readonly<Record<string, unknown>> = { ...options }
  const sources = { positionals, options: given, env, cwd }
  const layout = String(given['layout'] ?? (env['LAYOUT'] || 'flat'))
  const checks = positionals.map((folder) => async () => { await checkSkillsFolder(folder, cwd, commands, layout) })
  if ('config' in given || env['CONFIG_FILE']) return { sources: { ...sources, defaultFolder: undefined }, checks }
  if (examples === undefined || existsSync(resolve(cwd, SETTINGS.skillsDirs.default))) return { sources, checks }
  if (positionals.length === 0 && !env['SKILLS_DIR']) checks.push(async () => { await checkWorkingFolder(cwd) })
  return { sources: { ...sources, defaultFolder: examples }, checks }
}

/** Refuses to serve the example skills from a working folder that has skills itself. */
async function checkWorkingFolder (cwd: string): Promise<void> {
  if (isOnNetwork(cwd) || !await hasSkills(cwd)) return
  const folder = await mainFileIn(cwd) === undefined ? '.' : '..'
  throw new ConfigError(`there is no ./skills here, but this folder has skills: skillserve ${folder} serves them`)
}

/**
 * Reads the settings of a command that takes folders as `serve` does.
 * @throws ConfigError
 */
export async function readConfig (
  args: Arguments, context: ServeContext, examples?: string
): Promise<Config> {
  const { sources, checks } = readArguments(args, context, examples)
  for (const check of checks) await check()
  return loadConfig(sources)
}

/**
 * Fetches sources for a command that reads them once. One that is optional may fail, with a warning.
 * @throws ConfigError for one that is not optional
 */
export async function fetchSources (
  sources: Sources, { warn }: Pick<CommandContext, 'warn'>
): Promise<void> {
  await sources.sync()
  if (sources.failure !== undefined) throw new ConfigError(sources.failure)
  for (const sentence of sources.optionalFailures) warn(sentence)
}

/** Returns a function that warns of each entry that a command skips, once. */
export function skippedWarner ({ warn }: Pick<CommandContext, 'warn'>): (entries: readonly SkippedEntry[]) => void {
  const named = new Set<string>()
  return (entries) => {
    for (const sentence of entries.flatMap(describeSkipped)) {
      if (!named.has(sentence)) warn(sentence)
      named.add(sentence)
    }
  }
}
