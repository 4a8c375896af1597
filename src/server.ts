import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import closeWithGrace from 'close-with-grace'
import { buildApp } from './app.ts'
import { type Config, ConfigError } from './config.ts'
import { createSkillManager } from './core/skill-manager.ts'
import { LogOutput } from './log-output.ts'
import { createLogger } from './logger.ts'
import { createToolRegistry } from './tools/registry.ts'
import { createTools } from './tools/tools.ts'

/** Open connections at the same time, and their part of the descriptors there are: reading skills needs some too. */
const MAX_CONNECTIONS = 10_000
const CONNECTIONS_SHARE = 0.75

/** Descriptors of the process itself: the log, the event loop, the watcher. */
const OWN_DESCRIPTORS = 32

/** Clients with an open connection get this long to hear `Connection: close` before the port is given up, in milliseconds. */
const ANNOUNCE_MS = 200

/** Connections that wait to be accepted are taken for this long, in milliseconds, before the port is given up. */
const ACCEPT_MS = 1_000

/** Running requests may go on this long after a signal, in milliseconds; then their connections are cut. */
const DRAIN_DEADLINE_MS = 8_000

/** When the process ends whatever hangs, in milliseconds after a signal: below the ten seconds that Docker waits. */
const STOP_DEADLINE_MS = 9_000

/** Pause between two looks at calls to the file system that have not returned, in milliseconds. */
const SETTLE_MS = 20

/** Left to the system: after a real fault a handler in JavaScript would spin, and SIGUSR2 is for diagnostics. */
const NOT_HANDLED: closeWithGrace.AllEvents[] = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV', 'SIGUSR2']

/**
 * Starts the process: logger, skills, app, port; resolves when it listens (one log line per address says where).
 * From then on SIGTERM and SIGINT stop it with exit code 0 in under ten seconds, a second one at once with 1; an error
 * that nobody handled is logged in full and stops it with 1.
 * @param version of the package, for the OpenAPI document and MCP
 * @throws ConfigError when the address cannot be had
 */
export async function startServer (config: Config, version: string): Promise<void> {
  const output = new LogOutput()
  process.once('exit', () => { output.flushSync() })
  const logger = createLogger(config.logLevel, output)
  const skills = createSkillManager({
    projectRoots: config.skillsDirs,
    ...config.personalDir !== undefined && { personalRoot: config.personalDir },
    polling: config.watchPolling,
    log: logger
  })
  const registry = createToolRegistry(createTools(), {
    onError: (err, tool) => { logger.error({ err, tool }, 'a tool call met an error that its caller is not told') }
  })
  let stopping = false
  const app = await buildApp({
    skills,
    registry,
    logger,
    version,
    host: config.host,
    ...config.allowedHosts && { allowedHosts: config.allowedHosts },
    ...config.allowedOrigins && { allowedOrigins: config.allowedOrigins },
    isDraining: () => stopping
  })
  app.server.maxConnections = maxConnections()

  async function stop (): Promise<void> {
    if (await countConnections(app.server) > 0) await sleep(ANNOUNCE_MS)
    await readWaiting(app.server)
    await app.close()
    await skills.close()
    logger.info('stopped')
  }

  const signals = closeWithGrace({ delay: false, logger, skip: NOT_HANDLED }, async ({ signal, err }) => {
    stopping = true
    if (err) logger.fatal({ err }, 'stopping because of an error that nobody handled')
    else logger.info({ signal }, 'stopping')

    const deadline = sleep(STOP_DEADLINE_MS)
    setTimeout(() => {
      logger.warn('cutting the connections that are still open')
      app.server.closeAllConnections()
    }, DRAIN_DEADLINE_MS)
    await Promise.race([stop(), deadline])
    // A call to the file system that never returns (a dead network mount, a log that nobody reads) holds a thread,
    // and exit() would wait for that thread.
    const settled = await Promise.race([fileSystemSettled(), deadline.then(() => false)])
    if (!settled) process.kill(process.pid, 'SIGKILL')
  })

  try {
    await skills.start()
    await app.listen({
      // For `localhost` Fastify would make a second server, with none of what the first one was given.
      host: config.host === 'localhost' ? (await lookup(config.host)).address : config.host,
      port: config.port,
      listenTextResolver: (address) => `skillserve listening at ${address}`
    })
  } catch (error) {
    if (stopping) return
    signals.uninstall()
    await app.close()
    await skills.close()
    throw explainListenError(error, config)
  }
}

/**
 * Returns when all that has arrived by now is read: on a busy machine many connections wait with their requests, one or
 * few are accepted in a turn of the event loop, and to give up the port would reset the others.
 */
async function readWaiting (server: Server): Promise<void> {
  let isQuiet = false
  server.on('connection', () => { isQuiet = false })
  const deadline = performance.now() + ACCEPT_MS
  // One turn more than the last connection came in: in that one its request is read.
  for (let quietTurns = 0; quietTurns < 3 && performance.now() < deadline;) {
    isQuiet = true
    await nextTurn()
    quietTurns = isQuiet ? quietTurns + 1 : 0
  }
}

/** Where no limit can be read there is none that a service meets. */
function maxConnections (): number {
  const limit = Number(/^Max open files\s+(\d+)/m.exec(readLimits())?.[1] ?? Number.POSITIVE_INFINITY)
  return Math.max(1, Math.min(MAX_CONNECTIONS, Math.floor((limit - OWN_DESCRIPTORS) * CONNECTIONS_SHARE)))
}

function readLimits (): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return ''
  }
}

function countConnections (server: Server): Promise<number> {
  return promisify(server.getConnections.bind(server))()
}

/** Resolves with true when no call to the file system is under way, lines of the log included. */
async function fileSystemSettled (): Promise<true> {
  while (process.getActiveResourcesInfo().some((resource) => resource.startsWith('FSReq'))) await sleep(SETTLE_MS)
  return true
}

function explainListenError (error: unknown, { host, port }: Config): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  switch (code) {
    case 'EADDRINUSE':
      return new ConfigError(`port ${port} of ${host} is in use, PORT or --port chooses another (0 takes any free port)`, { cause: error })
    case 'EADDRNOTAVAIL':
      return new ConfigError(`${host} is not an address of this machine, HOST or --host chooses another`, { cause: error })
    case 'EACCES':
      return new ConfigError(`no permission to listen on port ${port} of ${host}, PORT or --port chooses another`, { cause: error })
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new ConfigError(`no address is known for ${host}, HOST or --host chooses another`, { cause: error })
    default:
      return error
  }
}
