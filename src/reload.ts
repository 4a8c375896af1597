import { isDeepStrictEqual } from 'node:util'
import { readConfigFile } from './config/config-file.ts'
import { ConfigError } from './config/setting.ts'
import type { CoreLog } from './core/shared/log.ts'
import type { RootSpec } from './sources/kinds.ts'

interface Reloaded {
  /** Files that are read again: access, lock, trust. */
  readonly files: ReadonlyArray<{ readonly path: string, reload (): Promise<void> }>
  readonly sources: { hint (): void } | undefined
  /** Of the configuration file, as it was read at the start. */
  readonly configFile: string | undefined
  readonly configured: readonly RootSpec[] | undefined
  /** Opens the audit log again. */
  readonly reopen?: (() => void) | undefined
  readonly log: CoreLog
}

/**
 * What SIGHUP does: operators' files are read again, and the audit log is opened again. The process goes on, whatever
 * is in them.
 */
export async function reload ({ files, sources, configFile, configured, reopen, log }: Reloaded): Promise<void> {
  reopen?.()
  await Promise.all(files.map((file) => file.reload()))
  sources?.hint()
  const done = {
    ...files.length > 0 && { read: files.map(({ path }) => path) },
    ...sources !== undefined && { sources: 'are checked now' },
    ...reopen !== undefined && { auditLog: 'was opened again' }
  }
  log.info(done, Object.keys(done).length > 0 ? 'SIGHUP: done' : 'SIGHUP: there is no file to read again')
  if (configFile === undefined) return
  try {
    if (isDeepStrictEqual(await readConfigFile(configFile), configured)) return
    log.warn(
      { file: configFile },
      'SIGHUP: the configuration file has changed: its list of sources is used after a restart'
    )
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    log.warn(
      { file: configFile, problem: error.message },
      'SIGHUP: the configuration file cannot be used: a restart would fail'
    )
  }
}
