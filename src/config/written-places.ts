import { isOnNetwork } from '../core/read/disk.ts'
import type { RootOptions } from '../core/roots/root.ts'
import { isWithin, realPathOf } from './files/files.ts'
import { ConfigError } from './setting.ts'
import type { Config } from './settings.ts'

/** What is served, as far as it is folders: addresses are undefined. */
interface ServedFolders {
  /** Those of SKILLS_DIR first. */
  readonly project: ReadonlyArray<string | undefined>
  readonly personal: string | undefined
}

type ServingConfig = Pick<Config, 'skillsDirs'> & Partial<Pick<Config, 'linkTargets'>>

/**
 * What lies among skills is served as their files, and may be written by their authors.
 * @param setting what names the path
 * @throws ConfigError that names the two settings
 */
export async function checkNotServed (
  path: string, setting: string, { skillsDirs, linkTargets = [] }: ServingConfig, { project, personal }: ServedFolders
): Promise<void> {
  const projectSetting = (index: number) => index < skillsDirs.length ? 'DIR or SKILLS_DIR' : 'CONFIG_FILE or --config'
  const folders = [
    ...project.map((folder, index) => [folder, projectSetting(index)] as const),
    [personal, 'SKILLS_PERSONAL_DIR or --personal'] as const,
    ...linkTargets.map((folder) => [folder, 'LINK_TARGETS or --allow-links'] as const)
  ]
  const real = await realPathOf(path)
  for (const [folder, named] of folders) {
    if (folder === undefined || !(isWithin(path, folder) || isWithin(real, await knownPathOf(folder)))) continue
    const place = `${JSON.stringify(path)} is inside ${JSON.stringify(folder)} of ${named}, whose files are served`
    throw new ConfigError(`${setting}: ${place}: choose a place outside all folders of skills`)
  }
}

interface Roots {
  readonly projectRoots: readonly RootOptions[]
  readonly personalRoot?: RootOptions
}

/** @throws ConfigError for an audit log or access file that would be served, and for no log where one is required */
export async function checkPlaces (config: Config, { projectRoots, personalRoot }: Roots): Promise<void> {
  const { accessFile, auditLog, auditRequired } = config
  if (auditLog === undefined && auditRequired) {
    throw new ConfigError('AUDIT_REQUIRED needs AUDIT_LOG: a file, or stdout')
  }
  const folders = { project: projectRoots.map((root) => root.path), personal: personalRoot?.path }
  const settings = [['AUDIT_LOG', auditLog], ['ACCESS_FILE or --access', accessFile]] as const
  for (const [setting, path] of settings) {
    if (path !== undefined && path !== 'stdout') await checkNotServed(path, setting, config, folders)
  }
}

/** The start waits for no network disk, which may never answer. */
async function knownPathOf (folder: string): Promise<string> {
  return isOnNetwork(folder) ? folder : await realPathOf(folder)
}
