import { readdir } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/settings.ts'
import type { OpenedRoots } from '../config/roots.ts'
import { isMainFile } from '../core/format/main-files.ts'
import type { SkippedEntry } from '../core/roots/scan-root.ts'
import { isFolder } from '../operator/is-folder.ts'
import { quote } from '../operator/setting.ts'
import { isAddress } from '../sources/address/address.ts'
import { type Arguments, type CommandContext, CommandError, commandHint, type CommandTable } from './command.ts'

/** Settings of a command that names no folder: a configuration file then says alone which skills there are. */
export function withoutDefaultFolder (config: Config, folders: readonly string[], env: CommandContext['env']): Config {
  return folders.length === 0 && !env['SKILLS_DIR'] && config.configFile !== undefined ? { ...config, skillsDirs: [] } : config
}

/** Flags that say how sources are read. */
export const ROOT_FLAGS = ['layout', 'state-dir'] as const

/** Entries that are left out and named. */
const MAX_SKIPPED_LINES = 10

/** A disk that has not answered after this many milliseconds does not keep the service from starting. */
const DISK_ANSWER_MS = 1_000

/**
 * Checks what was given as a folder of skills. `./path`, an absolute path or a name with a separator is a folder, there
 * or not. A bare word is one only if it is there, since it may as well be a mistyped command.
 * @param commands what a bare word may be a mistyping of; absent behind the name of a command that was understood
 * @param layout with another than `flat`, the folder may itself be a skill; an empty one is that of an unset variable
 * @throws CommandError for an unknown word, and for a folder that is itself a skill
 */
export async function checkSkillsFolder (text: string, cwd: string, commands: CommandTable | undefined, layout?: string): Promise<void> {
  if (isAddress(text)) return
  await Promise.race([check(text, resolve(cwd, text), commands, layout || 'flat'), sleep(DISK_ANSWER_MS, undefined, { ref: false })])
}

/**
 * Opens folders and addresses for a command that reads them once: sources are fetched before `use` is called, and closed after it.
 * @throws CommandError for what cannot be read as a folder, and for a source that does not deliver
 */
export async function withRoots<T> (texts: readonly string[], { flags }: Pick<Arguments, 'flags'>, { env, cwd }: CommandContext, use: (roots: OpenedRoots) => Promise<T>): Promise<T> {
  const own = new Map([...ROOT_FLAGS, 'config', 'allow-links'].flatMap((name) => flags.has(name) ? [[name, flags.get(name) ?? []] as const] : []))
  const config = withoutDefaultFolder(loadConfig({ positionals: texts, flags: own, env: { STATE_DIR: env['STATE_DIR'], LAYOUT: env['LAYOUT'], LINK_TARGETS: env['LINK_TARGETS'] }, cwd }), texts, {})
  for (const text of texts) await checkSkillsFolder(text, cwd, undefined, config.layout)
  const [{ openRoots }, { SILENT }] = await Promise.all([import('../config/roots.ts'), import('../core/ground/log.ts')])
  const roots = await openRoots(config, { log: SILENT, env })
  try {
    await roots.sources?.sync()
    const failed = roots.sources?.status.find(({ error }) => error !== undefined)
    if (failed !== undefined) throw new CommandError(`the source ${failed.name} cannot be read: ${failed.error?.message ?? ''}`)
    return await use(roots)
  } finally {
    await roots.sources?.close()
  }
}

/** Names on standard error what a command leaves out. */
export function warnSkipped (sentences: ReadonlySet<string>, { warn }: Pick<CommandContext, 'warn'>): void {
  for (const sentence of [...sentences].slice(0, MAX_SKIPPED_LINES)) warn(sentence)
  if (sentences.size > MAX_SKIPPED_LINES) warn(`${sentences.size - MAX_SKIPPED_LINES} more are left out`)
}

/**
 * Names what a command has left out, when the command is done or has failed.
 * @param remedy see `describeSkipped`
 */
export async function namingSkipped<T> (context: Pick<CommandContext, 'warn'>, use: (onSkipped: (entries: readonly SkippedEntry[]) => void) => Promise<T>, remedy?: (target: string) => string): Promise<T> {
  // Help and errors of the command line would load its tables too.
  const { describeSkipped } = await import('../core/roots/skipped.ts')
  const sentences = new Set<string>()
  try {
    return await use((entries) => { for (const sentence of entries.flatMap((entry) => describeSkipped(entry, remedy))) sentences.add(sentence) })
  } finally {
    warnSkipped(sentences, context)
  }
}

/** Absolute paths of the folders that links in folders of skills may lead into, by --allow-links or LINK_TARGETS. */
export function readLinkTargets ({ flags }: Pick<Arguments, 'flags'>, { env, cwd }: Pick<CommandContext, 'env' | 'cwd'>): readonly string[] | undefined {
  const own = new Map(flags.has('allow-links') ? [['allow-links', flags.get('allow-links') ?? []] as const] : [])
  return loadConfig({ positionals: [], flags: own, env: { LINK_TARGETS: env['LINK_TARGETS'] }, cwd }).linkTargets
}

async function check (text: string, path: string, commands: CommandTable | undefined, layout: string): Promise<void> {
  if (isBareWord(text) && !await isFolder(path)) {
    if (commands === undefined) throw new CommandError(`${quote(text)} is no folder in ${dirname(path)}`)
    throw new CommandError(`${quote(text)} is no command, and no folder here${commandHint(text, commands)}. A folder that is not there yet is given as ${quote(`./${text}`)}`)
  }
  if (layout !== 'flat') return
  const mainFile = await findMainFile(path)
  if (mainFile === undefined) return
  const parent = join(text, '..')
  throw new CommandError(`${quote(text)} is itself a skill, with its own ${mainFile}: give the folder that holds it, ${JSON.stringify(isBareWord(parent) ? `./${parent}` : parent)}`)
}

function isBareWord (text: string): boolean {
  return text !== '.' && text !== '..' && !isAbsolute(text) && !text.includes('/') && !text.includes(sep)
}

/** A folder that cannot be listed is left to the service, which says why. */
async function findMainFile (folder: string): Promise<string | undefined> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries.find((entry) => isMainFile(entry.name) && !entry.isDirectory())?.name
  } catch {
    return undefined
  }
}
