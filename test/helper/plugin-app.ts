import type { Server } from 'node:http'
import { Writable } from 'node:stream'
import { fastify, type FastifyHttpOptions, type FastifyInstance } from 'fastify'
import { pino } from 'pino'
import type { Test } from 'tap'
import { connections } from '../../src/http/connections.ts'
import { combineObservers } from '../../src/http/observer.ts'
import { httpServerOptions } from '../../src/http/options.ts'
import { Shutdown } from '../../src/http/shutdown.ts'
import { conditional } from '../../src/plugins/conditional.ts'
import { cors } from '../../src/plugins/cors.ts'
import { errors } from '../../src/plugins/errors.ts'
import { jsonBody } from '../../src/plugins/json-body.ts'
import { overload, type OverloadOptions } from '../../src/plugins/overload.ts'
import { security, type SecurityOptions } from '../../src/plugins/security.ts'
import { validation } from '../../src/plugins/validation.ts'
import { sharedSchemas } from '../../src/schemas/index.ts'

export interface PluginAppOptions {
  readonly server?: FastifyHttpOptions<Server>
  readonly allowedOrigins?: readonly string[]
  readonly security?: Partial<SecurityOptions>
  readonly shutdown?: Shutdown
  readonly overload?: OverloadOptions
}

export type LogEntry = Readonly<Record<string, unknown>>

/** A listening app with every cross-cutting plugin, in the service's order, and the routes of a test. */
export async function listenWithPlugins (t: Test, addRoutes: (app: FastifyInstance) => void, options: PluginAppOptions = {}) {
  const lines: string[] = []
  let wake = () => {}
  const stream = new Writable({
    write (chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString())
      wake()
      done()
    }
  })

  const { server = {}, allowedOrigins = [], shutdown = new Shutdown() } = options
  const app = fastify({ ...httpServerOptions({ logger: pino(stream), observer: combineObservers([]) }), ...server })
  t.teardown(() => {
    app.server.closeAllConnections()
    return app.close()
  })
  for (const property of ['principal', 'client', 'trace', 'problemCode']) app.decorateRequest(property, undefined)
  app.register(connections, { shutdown })
  app.register(security, { loopbackOnly: true, allowedHosts: [], ...options.security })
  app.register(errors, { basePath: '', translate: (error) => error })
  app.register(cors, { allowedOrigins })
  app.register(validation, { shared: sharedSchemas })
  app.register(jsonBody)
  app.register(conditional, { cacheSeconds: 0 })
  app.register(overload, { overload: options.overload })
  app.register((child, _options, done) => {
    addRoutes(child)
    done()
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })

  return {
    app,
    url,
    /** The log so far, as written. */
    lines,
    /** Resolves with the first log entry, from the start, that `test` accepts. */
    async logged (test: (entry: LogEntry) => boolean): Promise<LogEntry> {
      for (;;) {
        const found = lines.map((line) => JSON.parse(line) as LogEntry).find(test)
        if (found !== undefined) return found
        await new Promise<void>((resolve) => { wake = resolve })
      }
    }
  }
}

export type PluginApp = Awaited<ReturnType<typeof listenWithPlugins>>
