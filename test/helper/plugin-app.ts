import { Writable } from 'node:stream'
import { fastify, type FastifyInstance } from 'fastify'
import { pino } from 'pino'
import type { Test } from 'tap'
import { httpServerOptions, type HttpTimeouts } from '../../src/http/options.ts'
import { conditional } from '../../src/plugins/conditional.ts'
import { Connections } from '../../src/http/connections/connections.ts'
import { draining, type DrainingOptions } from '../../src/http/connections/draining.ts'
import { errors } from '../../src/plugins/errors.ts'
import { jsonBody } from '../../src/plugins/json-body.ts'
import { schemas } from '../../src/plugins/schemas.ts'
import { sharedSchemas } from '../../src/schemas/index.ts'
import { security, type SecurityOptions } from '../../src/plugins/security.ts'
import { overload } from '../../src/http/overload/overload.ts'
import { AnswerMemory, type AnswerMemoryOptions } from '../../src/http/overload/answer-memory.ts'
import { stalledResponses, type StalledResponsesOptions } from '../../src/http/connections/stalled-responses.ts'

export interface PluginAppOptions {
  readonly timeouts?: Partial<HttpTimeouts>
  readonly allowedOrigins?: readonly string[]
  readonly security?: Partial<SecurityOptions>
  readonly stalled?: Partial<StalledResponsesOptions>
  readonly draining?: Partial<DrainingOptions>
  readonly overload?: AnswerMemoryOptions
  /** Requests that may wait on all connections together. */
  readonly maxWaiting?: number
  /** Time in which a body that was refused may end, in milliseconds. */
  readonly lingerMs?: number
}

export interface PluginApp {
  readonly app: FastifyInstance
  /** Origin, for example `http://127.0.0.1:40123`. */
  readonly url: string
  /** The log so far, as written. */
  readonly lines: readonly string[]
  /** Resolves with the first log entry, from the start, that `test` accepts. */
  logged (test: (entry: LogEntry) => boolean): Promise<LogEntry>
}

export type LogEntry = Readonly<Record<string, unknown>>

/** A listening app with every cross-cutting plugin, in the service's order, and the routes of a test. */
export async function listenWithPlugins (t: Test, addRoutes: (app: FastifyInstance) => void, options: PluginAppOptions = {}): Promise<PluginApp> {
  const lines: string[] = []
  let wake = () => {}
  const stream = new Writable({
    write (chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString())
      wake()
      done()
    }
  })

  const connections = new Connections(options.maxWaiting, options.lingerMs)
  const app = fastify(httpServerOptions({ connections, logger: pino(stream), ...(options.timeouts && { timeouts: options.timeouts }), ...(options.allowedOrigins && { allowedOrigins: options.allowedOrigins }) }))
  t.teardown(() => {
    app.server.closeAllConnections()
    return app.close()
  })
  app.register(security, { loopbackOnly: true, allowedHosts: [], ...options.security })
  app.register(schemas, { shared: sharedSchemas })
  app.register(errors)
  app.register(jsonBody)
  app.register(conditional)
  app.register(stalledResponses, { connections, ...options.stalled })
  app.register(overload, { load: { level: 0 }, memory: new AnswerMemory(options.overload) })
  app.register(draining, { connections, ...options.draining })
  app.register((child, _options, done) => {
    addRoutes(child)
    done()
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })

  return {
    app,
    url,
    lines,
    async logged (test) {
      for (;;) {
        const found = lines.map((line) => JSON.parse(line) as LogEntry).find(test)
        if (found !== undefined) return found
        await new Promise<void>((resolve) => { wake = resolve })
      }
    }
  }
}
