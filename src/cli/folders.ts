import { existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { isAbsolute, join, resolve, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConfigSources, loadConfig } from '../config/load.ts'
import { type OpenedRoots, openRoots } from '../config/roots.ts'
import { didYouMean, quote } from '../config/setting.ts'
import { type Config, SETTINGS } from '../config/settings.ts'
import { mainFileAmong } from '../core/format/main-files.ts'
import type { SkippedEntry } from '../core/roots/list-root.ts'
import { describeSkipped } from '../core/roots/skipped.ts'
import { SILENT } from '../core/shared/log.ts'
import { isAddress } from '../sources/address/address.ts'
import type { Sources } from '../sources/sources.ts'
import { type Arguments, type CommandContext, CommandError } from './command.ts'
import { EXAMPLE_SKILLS } from './package-files.ts'
import { showing } from './progress.ts'

/** A disk that has not answered after this many milliseconds does not keep a command from starting. */
const DISK_ANSWER_MS = 1_000

/** Entries that are left out and named. */
const MAX_SKIPPED_LINES = 10

/**
 * Checks what was given as a folder of skills. `./path`, an absolute path or a name with a separator is a folder, there
 * or not. A bare word is one only if it is there, since it may as well be a mistyped command.
 * @param layout with another than `flat`, the folder may itself be a skill
 * @throws CommandError for an unknown word, for a file, and for a folder that is itself a skill
 */
export async function checkSkillsFolder (
  text: string, cwd: string, commands: readonly string[], layout = 'flat'
): Promise<void> {
  if (isAddress(text)) return
  const checked = check(text, resolve(cwd, text), commands, layout)
  await Promise.race([checked, sleep(DISK_ANSWER_MS, undefined, { ref: false })])
}

async function check (text: string, path: string, commands: readonly string[], layout: string): Promise<void> {
  const stats = await stat(path).catch(() => undefined)
  if (stats?.isDirectory() === false) throw new CommandError(`${quote(text)} is a file, not a folder of skills`)
  if (stats === undefined) {
    if (/^[\w-][\w.-]*\/[\w.-]+$/.test(text)) {
      throw new CommandError(`${quote(text)} is not a folder here, and not an address of skills: did you mean ` +
        `${quote(`github:${text}`)}? A folder that is not there yet is given as ${quote(`./${text}`)}`)
    }
    if (!isBareWord(text)) return
    if (commands.includes(text)) throw new CommandError(`a command comes first: skillserve ${text} …`)
    throw new CommandError(`${quote(text)} is not a command, and not a folder here${didYouMean(text, commands)} ` +
      `(commands: ${commands.join(', ')}). A folder that is not there yet is given as ${quote(`./${text}`)}`)
  }
  if (layout !== 'flat') return
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  const mainFile = mainFileAmong(entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name))
  if (mainFile === undefined) return
  const parent = join(text, '..')
  throw new CommandError(`${quote(text)} is itself a skill, with its own ${mainFile}: give the folder that holds it, ` +
    JSON.stringify(isBareWord(parent) ? `./${parent}` : parent))
}

function isBareWord (text: string): boolean {
  return text !== '.' && text !== '..' && !isAbsolute(text) && !text.includes('/') && !text.includes(sep)
}

/** Without a ./skills, the example skills of the package are served. */
export function defaultsOf (cwd: string): Pick<ConfigSources, 'defaults'> {
  return existsSync(resolve(cwd, SETTINGS.skillsDirs.default)) ? {} : { defaults: { skillsDirs: EXAMPLE_SKILLS } }
}

/**
 * Settings of a command that takes folders as `serve` does. Without a folder, a configuration file alone names skills.
 * @throws CommandError, ConfigError
 */
export async function readConfig (
  { positionals, flags }: Arguments, { env, cwd, commands }: Pick<CommandContext, 'env' | 'cwd' | 'commands'>,
  more: Pick<ConfigSources, 'defaults'> = {}
): Promise<Config> {
  const layout = flags.get('layout')?.at(-1) ?? env['LAYOUT']
  for (const folder of positionals) await checkSkillsFolder(folder, cwd, commands, layout || 'flat')
  const config = loadConfig({ positionals, flags, env, cwd, ...more })
  const isNamed = positionals.length > 0 || Boolean(env['SKILLS_DIR'])
  return isNamed || config.configFile === undefined ? config : { ...config, skillsDirs: [] }
}

/**
 * Fetches sources for a command that reads them once. One that is optional may fail, with a warning.
 * @throws CommandError for one that has to deliver and does not
 */
export async function fetchSources (
  sources: Sources | undefined, { progress, warn }: Pick<CommandContext, 'progress' | 'warn'>
): Promise<void> {
  await sources?.sync(showing(progress, 'source'))
  if (sources?.failure !== undefined) throw new CommandError(sources.failure)
  for (const sentence of sources?.passedOver ?? []) warn(sentence)
}

/**
 * Opens folders and addresses for a command that reads them once. Sources are fetched before `use` is called, and
 * closed after it.
 * @throws CommandError for what cannot be read as a folder, and for a source that does not deliver
 */
export async function withRoots<T> (
  { positionals, flags }: Arguments, context: CommandContext, use: (roots: OpenedRoots) => Promise<T>
): Promise<T> {
  const { env, commands, cwd } = context
  const own = only(flags, 'layout', 'state-dir', 'config', 'allow-links')
  const variables = { STATE_DIR: env['STATE_DIR'], LAYOUT: env['LAYOUT'], LINK_TARGETS: env['LINK_TARGETS'] }
  const config = await readConfig({ positionals, flags: own }, { env: variables, cwd, commands })
  const roots = await openRoots(config, { log: SILENT, env })
  try {
    await fetchSources(roots.sources, context)
    const absent = new Set(roots.sources?.status.flatMap(({ name, state }) => state === 'failed' ? name : []))
    const projectRoots = roots.projectRoots.filter(({ name }) => name === undefined || !absent.has(name))
    return await use({ ...roots, projectRoots })
  } finally {
    await roots.sources?.close()
  }
}

/** Absolute paths of the folders that links in folders of skills may lead into. */
export function readLinkTargets (
  { flags }: Pick<Arguments, 'flags'>, { env, cwd }: Pick<CommandContext, 'env' | 'cwd'>
): readonly string[] | undefined {
  const variables = { LINK_TARGETS: env['LINK_TARGETS'] }
  return loadConfig({ positionals: [], flags: only(flags, 'allow-links'), env: variables, cwd }).linkTargets
}

function only (flags: Arguments['flags'], ...names: readonly string[]): Arguments['flags'] {
  return new Map([...flags].filter(([name]) => names.includes(name)))
}

/** Names what a command has left out on standard error, when the command is done or has failed. */
export async function namingSkipped<T> (
  context: Pick<CommandContext, 'warn'>, use: (onSkipped: (entries: readonly SkippedEntry[]) => void) => Promise<T>
): Promise<T> {
  const sentences = new Set<string>()
  try {
    return await use((entries) => {
      for (const sentence of entries.flatMap((entry) => describeSkipped(entry))) sentences.add(sentence)
    })
  } finally {
    warnSkipped(sentences, context)
  }
}

export function warnSkipped (sentences: ReadonlySet<string>, { warn }: Pick<CommandContext, 'warn'>): void {
  for (const sentence of [...sentences].slice(0, MAX_SKIPPED_LINES)) warn(sentence)
  if (sentences.size > MAX_SKIPPED_LINES) warn(`${sentences.size - MAX_SKIPPED_LINES} more are left out`)
}
