import { isOnNetwork } from '../core/read/disk.ts'
import { isFolder } from './files/files.ts'
import type { Config } from './settings.ts'

/** Settings that somebody made and that change nothing without another: one sentence for each. */
export function idleSettings (config: Config): string[] {
  const { accessFile, auditLog, auditSalt, cacheSeconds, metricsPort, metricsReads } = config
  const problems: ReadonlyArray<readonly [isIdle: boolean, problem: string]> = [
    [auditLog === undefined && auditSalt !== undefined, 'AUDIT_SALT has no effect without AUDIT_LOG'],
    // With an access file, tokens get the metrics at the service's own port.
    [metricsReads && (metricsPort ?? accessFile) === undefined, 'METRICS_READS has no effect without METRICS_PORT'],
    // Answers depend on their callers, so that no shared cache may keep them.
    [cacheSeconds > 0 && accessFile !== undefined, 'CACHE_SECONDS has no effect with an access file']
  ]
  return problems.flatMap(([isIdle, problem]) => isIdle ? problem : [])
}

/** Folders that links may lead into and that are not there. Network disks are not asked: they may never answer. */
export async function missingLinkTargets ({ linkTargets = [] }: Config): Promise<string[]> {
  const local = linkTargets.filter((folder) => !isOnNetwork(folder))
  const areThere = await Promise.all(local.map(isFolder))
  return local.filter((_, index) => areThere[index] === false)
}
