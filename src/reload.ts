import type { Access } from './access/access.ts'
import type { OpenedRoots } from './config/roots.ts'
import { ConfigError } from './operator/setting.ts'
import type { Config } from './config/settings.ts'
import type { CoreLog } from './core/shared/log.ts'
import type { SkillManager } from './core/skill-manager.ts'
import type { Trust } from './trust/trust.ts'

interface Reloaded {
  readonly config: Pick<Config, 'configFile' | 'auditLog'>
  readonly roots: OpenedRoots
  readonly skills: SkillManager
  readonly access: Access | undefined
  readonly trust: Trust | undefined
  readonly observation: { reopen (): void }
  readonly log: CoreLog
}

/**
 * What SIGHUP does: operators' files are read again, and the audit log is opened again. The process goes on, whatever
 * is in them: a file that cannot be used changes nothing.
 */
export async function reload (parts: Reloaded): Promise<void> {
  const { config: { configFile, auditLog }, roots: { sources }, access, trust, observation, log } = parts
  if (auditLog !== undefined) observation.reopen()
  // Before the access file, whose rules may name new sources.
  const changes = configFile === undefined ? undefined : await reloadSources(configFile, parts)
  const files = [access?.file ?? [], trust?.files ?? []].flat()
  await Promise.all(files.map((file) => file.reload()))
  sources.checkSoon()
  const read = files.filter(({ remark }) => remark === undefined).map(({ path }) => path)
  const checked = sources.status.map(({ name }) => name)
  const done = {
    ...read.length > 0 && { read },
    ...changes !== undefined && { sources: changes },
    ...checked.length > 0 && { checked },
    ...auditLog !== undefined && { auditLog: 'reopened' }
  }
  const hasFiles = files.length > 0 || configFile !== undefined || Object.keys(done).length > 0
  log.info(done, hasFiles ? 'SIGHUP: done' : 'SIGHUP: there is no file to read again')
}

/** Returns what has become of the sources; undefined when the file cannot be used. */
async function reloadSources (file: string, parts: Reloaded): Promise<string | undefined> {
  const { roots, skills, access, trust, log } = parts
  try {
    const changes = await roots.reload(async (names) => { await access?.policyFor(names) })
    const guarded = trust?.guard(roots.sources.roots)
    await trust?.start()
    await skills.setRoots(guarded ?? roots.sources.roots)
    const made = Object.entries(changes).filter(([, names]) => names.length > 0)
    return made.map(([change, names]) => `${change} ${names.join(', ')}`).join('; ') || 'no change'
  } catch (error) {
    const problem = error instanceof ConfigError ? { problem: error.message } : { err: error }
    log.warn({ file, ...problem }, 'SIGHUP: the configuration file cannot be used; the sources stay as they are')
    return undefined
  }
}
