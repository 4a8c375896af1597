import type { Config } from './settings.ts'

/** Settings that somebody made and that change nothing without another: one sentence for each. */
export function idleSettings ({ accessFile, auditLog, auditRequired, auditSalt, cacheSeconds, metricsPort, metricsReads }: Config): string[] {
  const audit = [...auditRequired ? ['AUDIT_REQUIRED'] : [], ...auditSalt === undefined ? [] : ['AUDIT_SALT']]
  return [
    ...auditLog === undefined ? audit.map((name) => `${name} has no effect without AUDIT_LOG`) : [],
    // With an access file, tokens get the metrics at the service's own port.
    ...metricsReads && metricsPort === undefined && accessFile === undefined ? ['METRICS_READS has no effect without METRICS_PORT'] : [],
    // Answers depend on their callers, so that no shared cache may keep them.
    ...cacheSeconds > 0 && accessFile !== undefined ? ['CACHE_SECONDS has no effect with an access file'] : []
  ]
}
