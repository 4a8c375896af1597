import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, relative } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { ConfigError } from '../operator/setting.ts'
import { readSetting } from '../operator/yaml-file.ts'
import type { SkillManagerOptions } from '../core/skill-manager.ts'
import type { SkillService } from '../core/skill-source.ts'
import { SkillViews } from '../core/views/skill-views.ts'
import { Access, type AccessOptions } from './access.ts'

/** Skills behind an access file. */
export interface GuardedSkills {
  /** What the process starts and stops. */
  readonly skills: SkillViews
  /** What a door gets that does not ask who is there: nothing. */
  readonly service: SkillService
  readonly access: Access
}

const WRITABLE_BY_OTHERS = 0o002

/**
 * Opens the access file, and the folders of skills one by one.
 * @throws ConfigError of one line when the file cannot be used
 */
export async function openGuarded (options: SkillManagerOptions & { readonly log: FastifyBaseLogger }, access: Omit<AccessOptions, 'skills' | 'log'>): Promise<GuardedSkills> {
  const { log, projectRoots, personalRoot, linkTargets = [] } = options
  const roots = [...projectRoots, ...personalRoot === undefined ? [] : [personalRoot]].map((root) => typeof root === 'string' ? root : root.path)
  await checkPlace(access.file, [...roots, ...linkTargets], log)
  const skills = new SkillViews(options)
  const opened = await readSetting('ACCESS_FILE or --access', Access.open({ ...access, skills, log }))
  return { skills, service: opened.nothing, access: opened }
}

/** What lies among skills is served to whoever sees them, and may be written by their authors. A file that is not there is complained about by its reader. */
async function checkPlace (file: string, folders: readonly string[], log: FastifyBaseLogger): Promise<void> {
  const path = await realpath(file).catch(() => file)
  for (const folder of folders) {
    const inside = relative(await realpath(folder).catch(() => folder), path)
    if (!/^\.\.(?:[/\\]|$)/.test(inside) && !isAbsolute(inside)) throw new ConfigError(`${file} is inside ${folder}, whose files are served: move the access file out of all folders of skills`)
  }
  const mode = await stat(path).then((found) => found.mode, () => 0)
  if ((mode & WRITABLE_BY_OTHERS) !== 0) log.warn({ file }, 'every user of this machine can write the access file')
}
