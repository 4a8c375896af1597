import { join } from 'node:path'
import type { FastifyContextConfig, FastifyInstance, FastifyPluginAsync } from 'fastify'
import { pino } from 'pino'
import type { Test } from 'tap'
import fp from 'fastify-plugin'
import { openAccess } from '../../src/access/access.ts'
import { type AppOptions, buildApp } from '../../src/app.ts'
import type { Config } from '../../src/config/settings.ts'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from '../../src/core/skill-manager.ts'
import type { Observer } from '../../src/http/observer.ts'
import { StateFolder } from '../../src/sources/publish/state-folder.ts'
import type { TrustPolicy } from '../../src/trust/trust-policy.ts'
import { Trust } from '../../src/trust/trust.ts'
import { logCatalog } from '../../src/operator/catalog-log.ts'
import { readPackageVersion } from '../../src/operator/package-files.ts'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { createTools } from '../../src/tools/tools.ts'
import { responseCheckOf } from './openapi.ts'
import { rawRequest, request, type RequestHead } from './raw-http.ts'
import { until } from './skills.ts'

/** Text or bytes for a file, an object for a folder, `t.fixture(…)` for links. */
export type Files = Readonly<Record<string, NonNullable<Parameters<Test['testdir']>[0]>>>

export type LogEntry = Readonly<Record<string, unknown>>

type PassedOn = 'shutdown' | 'sources' | 'admitCall' | 'auditState' | 'overload' | 'isPreview'

export interface ServiceOptions extends Pick<SkillManagerOptions, 'disk' | 'keep' | 'watcher' | 'tickMs'>,
  Partial<Pick<AppOptions, keyof Config | PassedOn>> {
  /** Files next to the folder of skills. */
  readonly siblings?: Files
  /** Writes more files into the test's folder before the service starts. */
  readonly prepare?: (folder: string) => void
  /** Several project roots instead of `skills`, as paths below the test's folder. */
  readonly roots?: readonly string[]
  /** Personal root, as a path below the test's folder. */
  readonly personalRoot?: string
  /** Metrics, traces and audit log of the service. */
  readonly observe?: (skills: SkillManager) => readonly Observer[]
  /** Registers plugins, with the skills that they may need. */
  readonly plug?: (skills: SkillManager) => readonly FastifyPluginAsync[]
  /** Guards the roots, with verified copies in `state` of the test's folder. */
  readonly policy?: TrustPolicy
  /** The access file, below the test's folder. */
  readonly access?: string
  /** Whether to wait for the first index, as the process does not. Default true. */
  readonly indexed?: boolean
}

/** An answer that was validated against the OpenAPI document. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
  readonly text: string
  json (): unknown
}

/**
 * Starts the whole service on a free port over skills in the test's folder; the test's teardown ends it.
 * @param files what is in `skills`, the root; null for no such folder
 */
export async function buildService (t: Test, { files = {}, options = {} }: {
  readonly files?: Files | null
  readonly options?: ServiceOptions
} = {}) {
  const {
    siblings = {}, prepare, roots = ['skills'], personalRoot, linkTargets, disk, watcher = false, tickMs, keep, policy,
    indexed = true, access: file, host = '127.0.0.1', port = 0, observe, plug, ...appOptions
  } = options
  const folder = t.testdir({ ...files === null ? {} : { skills: files }, ...siblings })
  prepare?.(folder)
  const projectRoots = roots.map((root) => join(folder, root))
  let text = ''
  const logger = pino({ level: file === undefined ? 'info' : 'trace' }, { write: (line) => { text += line } })
  const log = () => text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as LogEntry)
  const trust = policy && new Trust({ policy, state: new StateFolder(join(folder, 'state')), log: logger })
  t.teardown(() => trust?.close())
  const guarded = trust?.guard(projectRoots.map((path) => ({ path })))
  await trust?.start()

  const skills = createSkillManager({
    projectRoots: [...guarded ?? projectRoots,
      ...personalRoot === undefined ? [] : [{ path: join(folder, personalRoot), type: 'personal' as const }]],
    ...linkTargets && { linkTargets: linkTargets.map((path) => join(folder, path)) },
    watcher,
    ...disk && { disk },
    ...tickMs !== undefined && { tickMs },
    ...keep && { keep },
    log: logger
  })
  logCatalog(skills.parts.catalog, logger)
  const access = file === undefined
    ? undefined
    : await openAccess({
      file: join(folder, file),
      basePath: '',
      ...appOptions,
      publicUrl: appOptions.publicUrl,
      skills,
      log: logger,
      env: {}
    })
  const registry = createToolRegistry(createTools(), { isOverloaded: () => app.isUnderPressure() })
  const app: FastifyInstance = await buildApp({
    skills: access?.nothing ?? skills,
    access,
    registry,
    logger,
    version: readPackageVersion(),
    host,
    trust,
    ...observe && { observers: observe(skills) },
    ...plug && { plugins: plug(skills) },
    ...appOptions
  })
  t.teardown(async () => {
    app.server.closeAllConnections()
    await app.close()
    await skills.close()
  })
  await (indexed ? skills.initialize() : skills.start())
  const url = await app.listen({ host, port })
  // Compiled only for tests that send requests: many use `inject`.
  let check: ReturnType<typeof responseCheckOf> | undefined
  const checked = () => (check ??= responseCheckOf(JSON.stringify(app.swagger())))
  let sent = 0

  /** Sends a request, and validates the answer against the OpenAPI document. */
  async function send (path: string, init: RequestInit = {}): Promise<Answer> {
    sent++
    const response = await fetch(`${url}${path}`, init)
    const bytes = Buffer.from(await response.arrayBuffer())
    const { status, headers } = response
    checked()({ method: init.method ?? 'GET', target: path, status, headers: Object.fromEntries(headers), body: bytes })
    return {
      status,
      headers,
      bytes,
      get text () { return bytes.toString('utf8') },
      json: (): unknown => JSON.parse(bytes.toString('utf8'))
    }
  }

  return {
    /** Origin, for example `http://127.0.0.1:40123`. */
    url,
    /** The test's folder, which holds the roots. */
    folder,
    /** Absolute path of the first root. */
    root: projectRoots[0] ?? folder,
    app,
    skills,
    access,
    registry,
    /** How many requests have been sent with `fetch`, `post` and `raw`. */
    get sent () { return sent },
    logText: () => text,
    log,
    /** Resolves with the first line of the log that matches, an earlier one included. */
    logged: async (passes: (entry: LogEntry) => boolean): Promise<LogEntry> => {
      await until(() => log().some(passes))
      return log().find(passes) ?? {}
    },
    fetch: send,
    /** POSTs JSON, a value or the JSON text itself, and validates the answer. */
    post: (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) => send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body)
    }),
    /** Sends a request target unchanged over a raw socket, and validates the answer. */
    raw: async (method: string, target: string, head: RequestHead = {}) => {
      sent++
      const response = await rawRequest(url, request(method, target, head))
      checked()({ method, target, status: response.status, headers: response.headers, body: response.body })
      return response
    }
  }
}

export type Service = Awaited<ReturnType<typeof buildService>>

/** Registers routes of the test, which are not in the OpenAPI document. */
export async function buildWithRoutes (t: Test, addRoutes: (app: FastifyInstance) => void,
  options: ServiceOptions = {}): Promise<Service> {
  return await buildService(t, { options: { ...options, plug: () => [async (app) => { addRoutes(app) }] } })
}

/** Records the routes that an app registers, and those that requests reach. */
export function followRoutes () {
  /** Registered routes, `HEAD` included: `GET`, `/skills/:name`. */
  const all: Array<{ readonly method: string, readonly url: string, readonly config: FastifyContextConfig }> = []
  const reached = new Set<string>()
  return {
    all,
    plugin: fp(async (app) => {
      app.addHook('onRoute',
        ({ method, url, config = {} }) => {
          for (const each of [method].flat()) {
            all.push({
              method: each, url, config
            })
          }
        })
      app.addHook('onRequest', ({ method, routeOptions: { url = '' } }, _reply, next) => {
        reached.add(`${method} ${url}`)
        next()
      })
    }),
    /** Returns the routes that no request has reached, as `GET /skills/:name`. */
    missed: () => all.map(({ method, url }) => `${method} ${url}`).filter((route) => !reached.has(route)).sort()
  }
}
