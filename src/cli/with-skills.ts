import { ConfigError } from '../operator/setting.ts'
import { readdir, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { logCatalog, type OnSkipped } from '../operator/catalog-log.ts'
import { isWithin, reasonOf, shownPath } from '../operator/files.ts'
import { loadConfig } from '../config/load.ts'
import { openRoots } from '../config/roots.ts'
import { isMainFile } from '../core/format/main-files.ts'
import type { RootOptions } from '../core/roots/root.ts'
import { SkillError } from '../core/shared/errors.ts'
import { SILENT } from '../core/shared/log.ts'
import { errorCode } from '../core/shared/system-errors.ts'
import { quote } from '../core/shared/text.ts'
import { createSkillManager, type SkillManager } from '../core/skill-manager.ts'
import { isAddress } from '../sources/address/address.ts'
import type { OpenedSkills } from '../validate/validate-skills.ts'
import type { Arguments, CommandContext } from './command.ts'
import { fetchSources, skippedWarner } from './folders.ts'

/** A folder of skills, one skill in it, or a root of a source. */
interface Place {
  readonly root: RootOptions
  /** Path or address as the caller gave it. */
  readonly path: string
  /** Name of the only skill to read. */
  readonly only?: string
}

/** Flags of commands that read skills. `config` adds the sources of a configuration file. */
export interface ReadOptions {
  readonly allowLinks?: readonly string[]
  readonly config?: string
  readonly layout?: string
  readonly stateDir?: string
}

/**
 * Opens skills for one reading: folders of skills, single skills, SKILL.md files and sources, each separately. Fetches
 * sources before it calls `use`. Warns of entries that are skipped.
 * @throws ConfigError for a place that cannot be read, and for one without skills
 */
export async function withSkills<T> (
  { positionals, options }: Arguments<ReadOptions>,
  context: Pick<CommandContext, 'cwd' | 'env' | 'warn'>, use: (opened: readonly OpenedSkills[]) => Promise<T>
): Promise<T> {
  const { env, cwd } = context
  const hasLayout = (options.layout ?? (env['LAYOUT'] || 'flat')) !== 'flat'
  // A SKILL.md is one skill in any layout.
  const isSource = (path: string) => isAddress(path) || (hasLayout && !isMainFile(basename(path)))
  const named = positionals.filter(isSource)
  const config = loadConfig({
    positionals: named,
    options: { ...options },
    env: { STATE_DIR: env['STATE_DIR'], LAYOUT: env['LAYOUT'], LINK_TARGETS: env['LINK_TARGETS'] },
    cwd,
    defaultFolder: undefined
  })
  const onSkipped = skippedWarner(context)
  const managers: SkillManager[] = []
  const hasSources = named.length > 0 || options.config !== undefined
  const roots = hasSources ? await openRoots(config, { log: SILENT, env }) : undefined
  // The path is empty for a user without a home folder.
  const published = roots?.state.path || undefined
  try {
    if (roots !== undefined) await fetchSources(roots.sources, context)
    const places: Place[] = []
    for (const path of positionals) if (!isSource(path)) places.push(await placeOf(path, cwd))
    for (const root of roots?.sources.roots ?? []) places.push({ root, path: root.name })
    const opened: OpenedSkills[] = []
    for (const place of places) {
      const skills = await openPlace(place, config.linkTargets, onSkipped)
      managers.push(skills)
      const { root: { path, name }, only } = place
      opened.push({
        folder: path,
        skills,
        names: await namesIn(place, skills),
        isOneSkill: only !== undefined,
        // Callers do not know the folder in which sources are published, so they see names.
        pathOf: (skillPath, skill) => published !== undefined && isWithin(skillPath, published)
          ? `${name}/${skill}`
          : shownPath(cwd, skillPath)
      })
    }
    if (opened.every(({ names }) => names.length === 0)) throw new ConfigError('there are no skills')
    return await use(opened)
  } finally {
    for (const skills of managers) await skills.close()
    await roots?.sources.close()
  }
}

/** Returns the place that a path names: a folder of skills, a skill, or the skill of a SKILL.md. */
async function placeOf (path: string, cwd: string): Promise<Place> {
  const absolute = resolve(cwd, path)
  const stats = await stat(absolute).catch((error: unknown) => {
    const isMissing = ['ENOENT', 'ENOTDIR'].includes(errorCode(error))
    throw new ConfigError(isMissing
      ? `${quote(path)} does not exist: give a folder of skills, a skill, or a SKILL.md`
      : `${quote(path)} cannot be read: ${reasonOf(error)}`)
  })
  const isFile = isMainFile(basename(absolute)) && !stats.isDirectory()
  if (!stats.isDirectory() && !isFile) {
    throw new ConfigError(`${quote(path)} is not a SKILL.md: give a folder of skills, a skill, or a SKILL.md`)
  }
  const folder = isFile ? dirname(absolute) : absolute
  const isSkill = isFile || (await readdir(folder).catch(() => [])).some(isMainFile)
  if (!isSkill) return { root: { path: folder, name: basename(folder) }, path }
  return { root: { path: dirname(folder), name: basename(dirname(folder)) }, path, only: basename(folder) }
}

async function openPlace (
  { root, only }: Place, linkTargets: readonly string[], onSkipped: OnSkipped
): Promise<SkillManager> {
  // A skill that is given as a path may be a link to any folder.
  const target = only === undefined ? [] : await realpath(join(root.path, only)).catch(() => [])
  const skills = createSkillManager({
    projectRoots: [root],
    watcher: false,
    keep: { keepMs: 0 },
    linkTargets: [...linkTargets, target].flat()
  })
  if (only === undefined) logCatalog(skills.parts.catalog, SILENT, onSkipped)
  await skills.start()
  return skills
}

async function namesIn ({ root, path, only }: Place, skills: SkillManager): Promise<readonly string[]> {
  const names = await skills.list().catch((error: unknown): readonly string[] => {
    if (!(error instanceof SkillError)) throw error
    // An optional source that could not be fetched.
    if (root.listed !== undefined) return []
    throw new ConfigError(`${quote(path)} cannot be read: ${error.message}`)
  })
  if (only !== undefined) {
    if (names.includes(only)) return [only]
    const reason = 'its folder name is not allowed for a skill, or a .skillignore hides it'
    throw new ConfigError(`${quote(path)} is not a skill of its folder: ${reason}`)
  }
  if (root.listed !== undefined) return names
  for (const name of names) {
    const { findings = [] } = await skills.find(name) ?? {}
    if (findings.every(({ code }) => code !== 'main_file_missing')) return names
  }
  const remedy = names.length === 0
    ? ''
    : '. Where they lie deeper, give the folder right above them, or --layout tree'
  throw new ConfigError(`${quote(path)} has no skills: no folder in it has a SKILL.md${remedy}`)
}
