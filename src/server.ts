import { setTimeout as sleep } from 'node:timers/promises'
import { isatty } from 'node:tty'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { buildApp } from './app.ts'
import { reasonOf } from './operator/files.ts'
import { ConfigError, type Environment } from './operator/setting.ts'
import { replaceListeners } from './operator/signals.ts'
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
 * Signals without a handler. After a real fault a handler in JavaScript would loop for ever. SIGUSR2 is for
 * diagnostics.
 */
const NOT_HANDLED: closeWithGrace.AllEvents[] = [
  'SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV', 'SIGUSR2'
]

/** Most open connections: the other descriptors are for reading skills. */
const MAX_CONNECTIONS = 10_000

export interface ServerOptions {
  readonly version: string
  /** The git commit that the service was built from. */
  readonly commit?: string | undefined
  readonly env: Environment
  readonly isExample?: boolean
  /**
   * Called with the address once the service listens, to reload open pages at each change; the returned function is
   * called at the end.
   */
  readonly preview?: (skills: View, url: string) => () => void
}

/** The parts that exist before all others and are closed after them. */
interface Base {
  readonly output: LineOutput
  readonly logger: Logger
  readonly shutdown: Shutdown
}

/**
 * Starts the service: opens all parts, builds the app, and listens; one log line for each address. SIGTERM and SIGINT
 * stop it with exit code 0, within ten seconds after the configured delay, also during the start. A second signal stops
 * it immediately with code 1. An unhandled error is logged in full and stops it with code 1.
 * @param version of the package
 * @param isExample whether the example skills of the package are served, which is logged
 * @throws ConfigError if the service cannot listen at the address
 */
export async function startServer (config: Config, options: ServerOptions): Promise<void> {
  const { env, preview } = options
  await checkPort(config)
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
    // The summary counts the findings, so their warnings are not logged.
    if (isForPerson) logger.level = 'error'
    await start(parts, config, shutdown)
    if (shutdown.isStopping) return
    const url = await listen(app, config)
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
    // A signal may close parts while they are being opened, which then fail.
    if (shutdown.isStopping) return
    await shutdown.close()
    throw error
  }
}

/** Handles signals and unhandled errors until the process ends. */
function stopAtSignals ({ logger, shutdown }: Omit<Base, 'output'>, isPreview: boolean): void {
  // These replace the listeners that every command starts with. A preview also ends with its terminal.
  const handled = ['SIGINT', 'SIGTERM', ...isPreview ? ['SIGHUP'] as const : []] as const
  const skip: typeof NOT_HANDLED = isPreview ? NOT_HANDLED : [...NOT_HANDLED, 'SIGHUP']
  const signals = replaceListeners(handled, () => closeWithGrace({ delay: false, logger, skip }, async (event) => {
    const { signal, err } = event
    const delaySeconds = err ? 0 : shutdown.delaySeconds
    if (errorCode(err) === 'EMFILE') logger.fatal({ err }, 'stopping: too many open files: raise the limit (ulimit -n)')
    else if (err) logger.fatal({ err }, 'stopping because of an unhandled error')
    else logger.info({ signal, ...delaySeconds > 0 && { delaySeconds } }, 'stopping')
    shutdown.isStopping = true
    await sleep(delaySeconds * 1_000)
    await shutdown.drain(logger)
  }))
  // Removes the handlers after a failed start. During a stop they stay, so that a second signal ends the process.
  shutdown.add(() => { if (!shutdown.isStopping) signals.uninstall() })
}

type Parts = Awaited<ReturnType<typeof openParts>>

/** Opens all parts without starting them. */
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
  // Closed before the skills, since lines of the audit log wait for revisions.
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

/** Starts all parts. Resolves when the skills are indexed. */
async function start ({ trust, skills, observation }: Parts, config: Config, shutdown: Shutdown): Promise<void> {
  if (!shutdown.isStopping) await trust?.start()
  if (!shutdown.isStopping) await skills.start()
  if (shutdown.isStopping) return
  try {
    await observation.start()
  } catch (error) {
    const { metricsPort = 0, metricsHost } = config
    throw explainListenError(error, metricsHost, metricsPort, ['METRICS_HOST', 'METRICS_PORT or --metrics-port'])
  }
}

/** Opens the rate limits and their store, if limits are on. */
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
  return { limits: createLimits({ ...config, limiter: store?.limiter }), store }
}

/** Opens the folders and sources, and the access file that decides which skills a caller sees. */
async function openService (config: Config, env: Environment, { logger, shutdown }: Base) {
  const opened = await openSkills(config, { env, log: logger, shutdown })
  const { skills } = opened
  const { accessFile: file, host } = config
  if (file === undefined && !isLoopback(host)) {
    const sentence = 'everybody who can reach this address can read every skill; restrict it with ACCESS_FILE'
    logger.warn({ host }, sentence)
  }
  const access = file === undefined
    ? undefined
    : await (await import('./access/access.ts')).openAccess({ ...config, file, skills, log: logger, env })
  return { ...opened, service: access?.nothing ?? skills, access }
}

/** @throws ConfigError if the file of the audit log cannot be opened */
async function openObservation (options: Parameters<typeof observe>[0]): Promise<Observation> {
  try {
    return await observe(options)
  } catch (error) {
    const isOpening = error instanceof Error && 'syscall' in error && error.syscall === 'open'
    if (!isOpening) throw error
    const why = `${options.config.auditLog ?? ''} cannot be opened (${reasonOf(error)})`
    throw new ConfigError(`AUDIT_LOG must be a writable file: ${why}`, { cause: error })
  }
}
