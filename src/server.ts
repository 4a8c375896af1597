import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import { type Logger, pino } from 'pino'
import { errorCode } from './core/disk/disk.ts'
import type { AccessDoors } from './http/callers.ts'
import { buildApp } from './app.ts'
import { idleSettings } from './config/idle-settings.ts'
import { openRoots } from './config/roots.ts'
import { ConfigError, type Environment } from './operator/setting.ts'
import type { Config } from './config/settings.ts'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from './core/skill-manager.ts'
import type { SkillService } from './core/skill-source.ts'
import { readBacklog } from './http/connections/accept-backlog.ts'
import { isLoopback } from './http/request/hosts.ts'
import { maxConnections } from './http/connections/max-connections.ts'
import { Closers, Shutdown } from './http/connections/shutdown.ts'
import { explainListenError, listen } from './listen.ts'
import { defaultLogFormat, logDestination } from './log-format.ts'
import { LogOutput } from './log-output.ts'
import { AnswerMemory } from './http/overload/answer-memory.ts'
import { Load } from './http/overload/load.ts'
import { protect, type Protection } from './limits/protect.ts'
import { observe, type Observation } from './observe/observe.ts'
import type { Sources } from './sources/sources.ts'
import { loadPolicy } from './trust/load-policy.ts'
import { createToolRegistry } from './tools/registry.ts'
import { createTools } from './tools/tools.ts'

/** Time for clients with an open connection to receive `Connection: close` before the port is closed, in milliseconds. */
const ANNOUNCE_MS = 200

/** Running requests may go on this long once the drain has begun, in milliseconds; then their connections are cut. */
const DRAIN_DEADLINE_MS = 8_000

/** When the process ends whatever hangs, in milliseconds after the drain has begun: below the ten seconds that Docker waits. */
const STOP_DEADLINE_MS = 9_000

/** Pause between two checks for calls to the file system that have not returned, in milliseconds. */
const RECHECK_MS = 20

/** Signals left to the system. After a real fault a handler in JavaScript would spin. SIGUSR2 is for diagnostics. */
const NOT_HANDLED: closeWithGrace.AllEvents[] = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV', 'SIGUSR2']

export interface ServerOptions {
  readonly version: string
  readonly env: Environment
  readonly isExample?: boolean
  /** Makes open pages follow each change. Called with the address once the service listens; what it returns is called at the end. */
  readonly preview?: (skills: SkillService, url: string) => () => void
}

/**
 * Starts the process: logger, skills, app, port. Resolves when it listens; one log line for each address says where.
 * From then on SIGTERM and SIGINT stop it with exit code 0, in under ten seconds after the configured delay. A second signal stops it at once with 1. An
 * error that nobody handled is logged in full and stops it with 1.
 * @param version of the package
 * @param isExample the folder is that of the package, since no other was named: the log says so
 * @throws ConfigError when the address cannot be had
 */
export async function startServer (config: Config, options: ServerOptions): Promise<void> {
  const ending = { closers: new Closers(), shutdown: new Shutdown() }
  try {
    await openServer(config, options, ending)
  } catch (error) {
    // What a signal closes while it is being opened.
    if (ending.shutdown.isLeaving) return
    await ending.closers.close()
    throw error
  }
}

/** How the process ends: by a signal, or because its start fails. */
interface Ending {
  /** What is open. */
  readonly closers: Closers
  readonly shutdown: Shutdown
}

async function openServer (config: Config, { version, env, isExample = false, preview }: ServerOptions, { closers, shutdown }: Ending): Promise<void> {
  const { output, logger } = await openLog(config, env)
  if (isExample) logger.info({ path: config.skillsDirs[0] }, 'no folder was named and there is no ./skills: serving the example skills of the package')
  for (const problem of idleSettings(config)) logger.warn({ problem }, 'a setting has no effect')
  const memory = new AnswerMemory()
  const opened = await openSkills(config, { logger, env, memory, closers })
  const { skills, service, access, sources, policy } = opened
  const load = new Load(logger)
  closers.add(() => { load.close() })
  const registry = createToolRegistry(createTools(), {
    isOverloaded: () => load.level > 0,
    onError: (err, tool) => { logger.error({ err, tool }, 'a tool call met an error that its caller is not told') }
  })
  const protection = await protect({
    isLimited: config.limits === 'on' || (config.limits === 'auto' && (access !== undefined || !isLoopback(config.host))),
    rate: config.limitRate,
    burst: config.limitBurst,
    trustedProxies: config.trustedProxies ?? [],
    store: config.limitsStore,
    hasCallers: access !== undefined,
    skills,
    log: logger
  })
  closers.add(() => { protection.close() })
  const observation = await openObservation(config, { ...opened, version, logger, output, load, protection })
  // Before the skills: lines of the audit log wait for their revisions.
  closers.add(() => observation.close())
  const app = await buildApp({
    skills: service,
    access,
    policy,
    ...sources && { sources },
    registry,
    logger,
    version,
    host: config.host,
    ...config.allowedHosts && { allowedHosts: config.allowedHosts },
    ...config.allowedOrigins && { allowedOrigins: config.allowedOrigins },
    basePath: config.basePath,
    ui: config.ui,
    isPreview: preview !== undefined,
    publicUrl: config.publicUrl,
    observers: observation.observers,
    shutdown,
    // What depends on the caller is for no shared cache.
    cacheSeconds: access === undefined ? config.cacheSeconds : 0,
    plugins: [...protection.plugins, ...observation.plugins],
    isRefusing: observation.isRefusing,
    clientOf: protection.clientOf,
    admitCall: protection.admitCall,
    load,
    memory
  })
  closers.add(() => app.close())
  app.server.maxConnections = maxConnections()

  const takesHangup = config.auditLog !== undefined || sources !== undefined
  // By habit, rotation of logs sends this signal. The audit log finds its file without it.
  if (takesHangup) process.on('SIGHUP', () => { sources?.hint() })
  const signals = closeWithGrace({ delay: false, logger, skip: takesHangup ? [...NOT_HANDLED, 'SIGHUP'] : NOT_HANDLED }, async ({ signal, err }) => {
    const delaySeconds = err ? 0 : config.shutdownDelay
    if (err) logger.fatal({ err }, 'stopping because of an error that nobody handled')
    else logger.info({ signal, ...delaySeconds > 0 && { delaySeconds } }, 'stopping')
    await shutdown.begin(delaySeconds * 1_000)
    await stop(app, closers)
  })
  // While the process stops, a second signal ends it.
  closers.add(() => { if (!shutdown.isLeaving) signals.uninstall() })

  await skills.start()
  try {
    await observation.start()
  } catch (error) {
    throw explainListenError(error, config.metricsPort ?? 0, config.metricsHost, 'METRICS_PORT', 'METRICS_HOST')
  }
  const url = await listen(app, config, preview === undefined ? 'PORT or --port' : '--port')
  // Whoever started the process waits for the address.
  output.flush()
  load.start()
  const endPreview = preview?.(service, url)
  if (endPreview !== undefined) closers.add(endPreview)
  sources?.start()
}

async function openLog ({ logLevel, logFormat = defaultLogFormat() }: Config, env: Environment): Promise<{ readonly output: LogOutput, readonly logger: Logger }> {
  const output = new LogOutput()
  process.once('exit', () => { output.flushSync() })
  const logger = pino({ level: logLevel }, await logDestination(logFormat, output, env))
  output.dropped.subscribe((lines) => { logger.warn({ lines }, 'lines of the log were dropped here: standard output did not take them') })
  return { output, logger }
}

interface OpenedSkills {
  readonly skills: SkillManager
  readonly service: SkillService
  readonly access?: AccessDoors
  readonly sources: Sources | undefined
  readonly policy: Awaited<ReturnType<typeof loadPolicy>>
}

/** The folders and sources with their policy, and what an access file lets callers see of them. */
async function openSkills (config: Config, { logger, env, memory, closers }: { readonly logger: Logger, readonly env: Environment, readonly memory: AnswerMemory, readonly closers: Closers }): Promise<OpenedSkills> {
  const roots = await openRoots(config, { log: logger, env })
  const { sources, ...folders } = roots
  closers.add(() => sources?.close())
  const policy = await loadPolicy(config, roots, logger)
  closers.add(() => { policy?.close() })
  const options: SkillManagerOptions & { readonly log: Logger } = {
    ...folders,
    ...config.linkTargets && { linkTargets: config.linkTargets },
    polling: config.watchPolling,
    keep: { keepMs: config.keepRevisionSeconds * 1_000, maxBytes: config.keepRevisionBytes },
    log: logger,
    policy,
    hasRoom: (bytes: number, since: number) => memory.hasRoomFor(bytes, since)
  }
  const skills = createSkillManager(options)
  closers.add(() => skills.close())
  const { accessFile: file, basePath, publicUrl, host } = config
  if (file === undefined) {
    if (!isLoopback(host)) logger.warn({ host }, 'everybody who can reach this address can read every skill: ACCESS_FILE decides who sees what')
    return { skills, service: skills, sources, policy }
  }
  const { openAccess } = await import('./access/open.ts')
  const access = await openAccess({ file, basePath, publicUrl, skills, log: logger }, [...skills.rootPaths, ...config.linkTargets ?? []])
  return { skills, service: access.nothing, access, sources, policy }
}

interface ObservedParts extends OpenedSkills {
  readonly version: string
  readonly logger: Logger
  readonly output: LogOutput
  readonly load: Load
  readonly protection: Protection
}

/** @throws ConfigError when the file of the audit log cannot be opened */
async function openObservation (config: Config, { skills, service, access, sources, policy, version, logger, output, load, protection }: ObservedParts): Promise<Observation> {
  try {
    return await observe({
      skills,
      version,
      log: logger,
      metrics: {
        address: config.metricsPort === undefined ? undefined : { host: config.metricsHost, port: config.metricsPort },
        hasCallers: access !== undefined,
        basePath: config.basePath,
        countsReads: config.metricsReads
      },
      audit: config.auditLog === undefined
        ? undefined
        : {
            path: config.auditLog,
            isRequired: config.auditRequired,
            stdout: output,
            salt: config.auditSalt,
            skills: access?.everything ?? service,
            policies: [...access ? [access.file] : [], ...policy?.files ?? []],
            judged: policy?.judged
          },
      clientOf: protection.clientOf,
      readings: {
        logDropped: () => output.lost,
        limitsStoreFailures: protection.storeFailures,
        overloadLevel: () => load.level,
        limited: () => protection.refusals,
        authFailures: () => access?.refusals ?? [],
        issuersAway: () => access?.issuersAway ?? 0,
        ...sources && { sources: () => sources.status }
      }
    })
  } catch (error) {
    const code = error instanceof Error && 'syscall' in error && error.syscall === 'open' ? errorCode(error) : undefined
    throw code === undefined ? error : new ConfigError(`AUDIT_LOG must be a file that can be written, and ${config.auditLog ?? ''} cannot be opened (${code})`, { cause: error })
  }
}

/** Drains and closes everything; returns by the deadline in any case, or kills the process. */
async function stop (app: FastifyInstance, closers: Closers): Promise<void> {
  const deadline = sleep(STOP_DEADLINE_MS)
  setTimeout(() => {
    app.log.warn('cutting the connections that are still open')
    app.server.closeAllConnections()
  }, DRAIN_DEADLINE_MS)
  await Promise.race([close(), deadline])
  // A call to the file system that never returns holds a thread. The cause is a dead network mount, below skills or below the log.
  // exit() would wait for that thread.
  const isFree = await Promise.race([fileSystemIdle(), deadline.then(() => false)])
  if (!isFree) process.kill(process.pid, 'SIGKILL')

  async function close (): Promise<void> {
    const connections = await promisify(app.server.getConnections.bind(app.server))()
    if (connections > 0) await sleep(ANNOUNCE_MS)
    await readBacklog(app.server)
    await closers.close()
    app.log.info('stopped')
  }
}

/** Resolves with true when no call to the file system is under way, lines of the log included. */
async function fileSystemIdle (): Promise<true> {
  while (process.getActiveResourcesInfo().some((resource) => resource.startsWith('FSReq'))) await sleep(RECHECK_MS)
  return true
}
