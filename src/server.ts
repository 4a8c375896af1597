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
import { createLimits, type Limits } from './limits/limits.ts'
import { connectStore, type LimitsStore } from './limits/store.ts'
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

/**
 * Starts the process: logger, skills, app, port. Resolves when it listens; one log line for each address says where.
 * SIGTERM and SIGINT stop it with exit code 0, in under ten seconds after the configured delay, and while it starts
 * too. A second signal stops it immediately with 1. An error that nobody handled is logged in full and stops it with 1.
 * @param version of the package
 * @param isExample the folder is that of the package, since no other was named: the log says so
 * @throws ConfigError when the address cannot be had
 */
export async function startServer (config: Config, options: ServerOptions): Promise<void> {
  await checkPort(config, options.preview === undefined ? 'PORT or --port' : '--port')
  const shutdown = new Shutdown()
  try {
    await openServer(config, options, shutdown)
  } catch (error) {
    // What a signal closes while it is being opened.
    if (shutdown.isStopping) return
    await shutdown.close()
    throw error
  }
}

async function openServer (config: Config, options: ServerOptions, shutdown: Shutdown): Promise<void> {
  const { env, preview } = options
  const { output, logger } = await openLog(config.logLevel, env, config.logFormat)
  const open: { parts?: Awaited<ReturnType<typeof openParts>> } = {}
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.removeAllListeners(signal)
  // A preview ends with its terminal.
  const skip: typeof NOT_HANDLED = preview === undefined ? [...NOT_HANDLED, 'SIGHUP'] : NOT_HANDLED
  const signals = closeWithGrace({ delay: false, logger, skip }, async ({ signal, err }) => {
    const delaySeconds = err || open.parts?.app.server.listening !== true ? 0 : config.shutdownDelay
    if (errorCode(err) === 'EMFILE') logger.fatal({ err }, 'stopping: too many open files: raise the limit (ulimit -n)')
    else if (err) logger.fatal({ err }, 'stopping because of an unhandled error')
    else logger.info({ signal, ...delaySeconds > 0 && { delaySeconds } }, 'stopping')
    shutdown.isStopping = true
    await sleep(delaySeconds * 1_000)
    await shutdown.drain(opening, logger)
  })
  const reloadAll = coalesce(async () => {
    if (!shutdown.isStopping) await open.parts?.reload.run()
  })
  if (preview === undefined) process.on('SIGHUP', () => { void reloadAll() })
  shutdown.add(() => {
    // While the process stops, a second signal ends it.
    if (shutdown.isStopping) return
    signals.uninstall()
  })

  const isForPerson = preview === undefined && isatty(1) && config.logFormat !== 'json' && config.logLevel === 'info'
  // A person at a terminal gets a summary instead of single lines.
  if (isForPerson) logger.level = 'warn'
  const opening = openParts(config, options, { output, logger, shutdown })
  const { app, skills, service, roots, trust, observation } = open.parts = await opening
  // The summary counts findings of skills.
  if (isForPerson) logger.level = 'error'
  if (!shutdown.isStopping) await trust?.start()
  if (!shutdown.isStopping) await skills.start()
  if (shutdown.isStopping) return
  try {
    await observation.start()
  } catch (error) {
    const { metricsPort = 0, metricsHost } = config
    throw explainListenError(error, metricsPort, metricsHost, 'METRICS_PORT or --metrics-port', 'METRICS_HOST')
  }
  const url = await listen(app, config, preview === undefined ? 'PORT or --port' : '--port')
  if (isForPerson) {
    output.write(await startSummary({ skills, config, version: options.version, url: `${url}${config.basePath}` }))
    logger.level = config.logLevel
  }
  output.flush()
  const endPreview = preview?.(service, url)
  if (endPreview !== undefined) shutdown.add(endPreview)
  roots.sources.start()
}

/** What all parts are opened with. */
interface Base {
  readonly output: LineOutput
  readonly logger: Logger
  readonly shutdown: Shutdown
}

/** All parts, which serve nobody yet. */
async function openParts (
  config: Config, { version, commit, env, isExample = false, preview }: ServerOptions, base: Base
) {
  const { logger, shutdown } = base
  if (isExample) {
    const sentence = 'no folder was named and there is no ./skills: serving the example skills of the package'
    logger.info({ path: config.skillsDirs[0] }, sentence)
  }
  const opened = await openService(config, env, base)
  const { service, access, roots: { sources }, trust } = opened
  const built: { app?: FastifyInstance } = {}
  const isOverloaded = () => built.app?.isUnderPressure() === true
  const registry = createToolRegistry(createTools(), {
    isOverloaded,
    onError: (err, tool) => { logger.error({ err, tool }, 'a tool call failed; its caller got no details') }
  })
  const { limits, store } = await openLimits(config, access !== undefined, base)
  const readings = {
    logDropped: () => base.output.dropped,
    limitsStoreFailures: () => store?.failures() ?? 0,
    overloadLevel: () => isOverloaded() ? 1 : 0,
    limited: () => Object.entries(limits?.refusals ?? {}),
    authFailures: () => access?.refusals ?? [],
    issuersAway: () => access?.issuersAway ?? 0,
    sources: () => sources.status
  }
  const observation = await openObservation({
    config,
    version,
    log: logger,
    stdout: base.output,
    measured: opened.skills,
    skills: opened.skills,
    policies: [...access ? [access.file] : [], ...trust?.files ?? []],
    trust,
    readings
  })
  const reload = new Reload({ ...opened, observation, config, log: logger })
  // Before the skills: lines of the audit log wait for their revisions.
  shutdown.add(() => observation.close())
  const app = built.app = await buildApp({
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
  return { ...opened, app, observation, reload }
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
  const store = config.limitsStore === undefined ? undefined : await connectStore(config.limitsStore, logger)
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
