import { setTimeout as sleep } from 'node:timers/promises'
import { isatty } from 'node:tty'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { buildApp } from './app.ts'
import { reasonOf } from './operator/files.ts'
import { ConfigError, type Environment } from './operator/setting.ts'
import type { Config } from './config/settings.ts'
import { coalesce } from './core/shared/async.ts'
import { errorCode } from './core/shared/system-errors.ts'
import type { View } from './core/view.ts'
import { isLoopback } from './http/request/hosts.ts'
import { Shutdown } from './http/shutdown.ts'
import { checkPort, explainListenError, listen } from './listen.ts'
import { type LineOutput, openLog } from './log.ts'
import { openSkills } from './open-skills.ts'
import { overloadLimits } from './plugins/overload.ts'
import type { Limits } from './limits/limits.ts'
import type { LimitsStore } from './limits/store.ts'
import { observe, type Observation } from './observe/observe.ts'
import { Reload } from './reload.ts'
import { startSummary } from './start-summary.ts'
import { createToolRegistry } from './tools/registry.ts'
import { createTools } from './tools/tools.ts'

/**
 * Signals that do not stop the process by themselves. After a real fault a handler in JavaScript would spin. SIGUSR2 is
 * for diagnostics.
 */
const NOT_HANDLED: closeWithGrace.AllEvents[] = [
  'SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV', 'SIGUSR2'
]

/** Open connections at the same time: descriptors are left for reading skills. */
const MAX_CONNECTIONS = 10_000

export interface ServerOptions {
  readonly version: string
  /** The git commit that the service was built from. */
  readonly commit?: string | undefined
  readonly env: Environment
  readonly isExample?: boolean
  /**
   * Makes open pages follow each change. Called with the address once the service listens; what it returns is called at
   * the end.
   */
  readonly preview?: (skills: View, url: string) => () => void
}

/** What outlives all parts of the service. */
interface Base {
  readonly output: LineOutput
  readonly logger: Logger
  readonly shutdown: Shutdown
}

/**
 * Starts the process: opens all parts, builds the app of them, and listens. Resolves when it listens; one log line for
 * each address says where. SIGTERM and SIGINT stop it with exit code 0, in under ten seconds after the delay that is
 * configured, also while it starts. A second signal stops it immediately with 1. An unhandled error is logged in full
 * and stops it with 1.
 * @param version of the package
 * @param isExample the folder is that of the package, since no other was named: the log says so
 * @throws ConfigError when the address cannot be had
 */
export async function startServer (config: Config, options: ServerOptions): Promise<void> {
  const { env, preview } = options
  const portSetting = preview === undefined ? 'PORT or --port' : '--port'
  await checkPort(config, portSetting)
  const { output, logger } = await openLog(config.logLevel, env, config.logFormat)
  const shutdown = new Shutdown()
  stopAtSignals({ logger, shutdown }, preview !== undefined)
  const isForPerson = preview === undefined && isatty(1) && config.logFormat !== 'json' && config.logLevel === 'info'
  // A person at a terminal gets a summary instead of single lines.
  if (isForPerson) logger.level = 'warn'
  try {
    const parts = await openParts(config, options, { output, logger, shutdown })
    const reload = coalesce(async () => { if (!shutdown.isStopping) await parts.reload.run() })
    if (preview === undefined) process.on('SIGHUP', () => { void reload() })
    const app = await build(parts, config, options, { logger, shutdown })
    // The summary counts findings of skills.
    if (isForPerson) logger.level = 'error'
    await start(parts, config, shutdown)
    if (shutdown.isStopping) return
    const url = await listen(app, config, portSetting)
    shutdown.delaySeconds = config.shutdownDelay
    if (isForPerson) {
      const { skills } = parts
      output.write(await startSummary({ skills, config, version: options.version, url: `${url}${config.basePath}` }))
      logger.level = config.logLevel
    }
    output.flush()
    const endPreview = preview?.(parts.service, url)
    if (endPreview !== undefined) shutdown.add(endPreview)
    parts.roots.sources.start()
  } catch (error) {
    // Parts that a signal closes while they are being opened.
    if (shutdown.isStopping) return
    await shutdown.close()
    throw error
  }
}

/** Handles signals and errors that nobody handled until the end of the process. */
function stopAtSignals ({ logger, shutdown }: Omit<Base, 'output'>, isPreview: boolean): void {
  // Instead of the listeners that every command starts with. A preview ends with its terminal.
  const handled = ['SIGINT', 'SIGTERM', ...isPreview ? ['SIGHUP'] as const : []] as const
  for (const signal of handled) process.removeAllListeners(signal)
  const skip: typeof NOT_HANDLED = isPreview ? NOT_HANDLED : [...NOT_HANDLED, 'SIGHUP']
  const signals = closeWithGrace({ delay: false, logger, skip }, async ({ signal, err }) => {
    const delaySeconds = err ? 0 : shutdown.delaySeconds
    if (errorCode(err) === 'EMFILE') logger.fatal({ err }, 'stopping: too many open files: raise the limit (ulimit -n)')
    else if (err) logger.fatal({ err }, 'stopping because of an unhandled error')
    else logger.info({ signal, ...delaySeconds > 0 && { delaySeconds } }, 'stopping')
    shutdown.isStopping = true
    await sleep(delaySeconds * 1_000)
    await shutdown.drain(logger)
  })
  // After a failed start. While the process stops, a second signal ends it.
  shutdown.add(() => { if (!shutdown.isStopping) signals.uninstall() })
}

type Parts = Awaited<ReturnType<typeof openParts>>

/** Opens all parts, which do not follow anything yet. */
async function openParts (config: Config, { version, env, isExample = false }: ServerOptions, base: Base) {
  const { logger, shutdown, output } = base
  if (isExample) {
    const sentence = 'no folder was named and there is no ./skills: serving the example skills of the package'
    logger.info({ path: config.skillsDirs[0] }, sentence)
  }
  const opened = await openService(config, env, base)
  const { skills, access, trust, roots: { sources } } = opened
  const { limits, store } = await openLimits(config, access !== undefined, base)
  const readings = {
    logDropped: () => output.dropped,
    limitsStoreFailures: () => store?.failures() ?? 0,
    limited: () => Object.entries(limits?.refusals ?? {}),
    authFailures: () => access?.refusals ?? [],
    unreachableIssuers: () => access?.unreachableIssuers ?? 0,
    sources: () => sources.status
  }
  const policies = [...access ? [access.file] : [], ...trust?.files ?? []]
  const observation = await openObservation({
    config, version, log: logger, stdout: output, measured: skills, skills, policies, trust, readings
  })
  // Before the skills: lines of the audit log wait for their revisions.
  shutdown.add(() => observation.close())
  return { ...opened, limits, observation, reload: new Reload({ ...opened, observation, config, log: logger }) }
}

async function build (
  { service, access, trust, roots: { sources }, limits, observation, reload }: Parts, config: Config,
  { version, commit, preview }: ServerOptions, { logger, shutdown }: Omit<Base, 'output'>
): Promise<FastifyInstance> {
  const registry = createToolRegistry(createTools(), {
    isOverloaded: () => app.isUnderPressure(),
    onError: (err, tool) => { logger.error({ err, tool }, 'unexpected error in a tool') }
  })
  const app = await buildApp({
    ...config,
    skills: service,
    access,
    trust,
    sources,
    reload,
    registry,
    logger,
    version,
    commit,
    isPreview: preview !== undefined,
    observers: observation.observers,
    shutdown,
    // What depends on the caller is for no shared cache.
    cacheSeconds: access === undefined ? config.cacheSeconds : 0,
    tracing: observation.tracing,
    plugins: [...limits === undefined ? [] : [limits.plugin], ...observation.plugins],
    auditState: observation.auditState,
    admitCall: limits?.admitCall,
    overload: overloadLimits()
  })
  shutdown.add(() => app.close())
  app.server.maxConnections = MAX_CONNECTIONS
  return app
}

/** Has all parts follow what they serve. Resolves once the skills are indexed. */
async function start ({ trust, skills, observation }: Parts, config: Config, shutdown: Shutdown): Promise<void> {
  if (!shutdown.isStopping) await trust?.start()
  if (!shutdown.isStopping) await skills.start()
  if (shutdown.isStopping) return
  try {
    await observation.start()
  } catch (error) {
    const { metricsPort = 0, metricsHost } = config
    throw explainListenError(error, metricsPort, metricsHost, 'METRICS_PORT or --metrics-port', 'METRICS_HOST')
  }
}

/** Without limits where nothing is limited. */
async function openLimits (
  config: Config, hasCallers: boolean, { logger, shutdown }: Base
): Promise<{ readonly limits?: Limits, readonly store?: LimitsStore | undefined }> {
  const isExposed = hasCallers || !isLoopback(config.host)
  const isLimited = config.limits === 'on' || (config.limits === 'auto' && isExposed)
  if (!isLimited) {
    const isConfigured = config.limitsStore !== undefined || config.limitBurst !== undefined
    if (isConfigured) logger.warn({}, 'limits are off: LIMITS_STORE and LIMIT_BURST have no effect without LIMITS=on')
    return {}
  }
  const { createLimits } = await import('./limits/limits.ts')
  const store = config.limitsStore === undefined
    ? undefined
    : await (await import('./limits/store.ts')).connectStore(config.limitsStore, logger)
  shutdown.add(() => { store?.close() })
  return { limits: createLimits({ rate: config.limitRate, burst: config.limitBurst, limiter: store?.limiter }), store }
}

/** The folders and sources and what an access file lets callers see of them. */
async function openService (config: Config, env: Environment, { logger, shutdown }: Base) {
  const keep = { keepMs: config.keepRevisionSeconds * 1_000, maxBytes: config.keepRevisionBytes }
  const opened = await openSkills(config, { env, log: logger, shutdown, keep })
  const { skills } = opened
  const { accessFile: file, basePath, publicUrl, host } = config
  if (file === undefined && !isLoopback(host)) {
    const sentence = 'everybody who can reach this address can read every skill: ACCESS_FILE decides who sees what'
    logger.warn({ host }, sentence)
  }
  const access = file === undefined
    ? undefined
    : await (await import('./access/access.ts')).openAccess({ file, basePath, publicUrl, skills, log: logger, env })
  return { ...opened, service: access?.nothing ?? skills, access }
}

/** @throws ConfigError when the file of the audit log cannot be opened */
async function openObservation (options: Parameters<typeof observe>[0]): Promise<Observation> {
  try {
    return await observe(options)
  } catch (error) {
    const isOpening = error instanceof Error && 'syscall' in error && error.syscall === 'open'
    if (!isOpening) throw error
    const why = `${options.config.auditLog ?? ''} cannot be opened (${reasonOf(error)})`
    throw new ConfigError(`AUDIT_LOG must be a file that can be written, and ${why}`, { cause: error })
  }
}
