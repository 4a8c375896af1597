import type { FastifyPluginAsync, preValidationAsyncHookHandler } from 'fastify'
import { addVary } from '../http/headers.ts'
import { prefersPage } from './accept.ts'
import type { Pages, PagesOptions } from './pages.ts'

export interface CatalogPages {
  /** Answers `GET /` for browsers; for others the route goes on. */
  readonly list: preValidationAsyncHookHandler
  /** Everything below `/ui/`. */
  readonly routes: FastifyPluginAsync
}

/** The catalog for people. It costs its routes: what makes pages is loaded when the first one is asked for. */
export function catalogPages (options: PagesOptions): CatalogPages {
  let loading: Promise<Pages> | undefined
  const pages = () => (loading ??= load())

  async function load (): Promise<Pages> {
    try {
      const { Pages } = await import('./pages.ts')
      return new Pages(options)
    } catch (error) {
      // A later request may succeed: too many open files, for example, is a passing failure.
      loading = undefined
      throw error
    }
  }

  return {
    async list (request, reply) {
      // Of the server as a whole: no page.
      if (request.url === '*') return
      addVary(reply, 'Accept')
      if (prefersPage(request)) await (await pages()).list(request, reply)
    },
    async routes (app) {
      const schema = { hide: true }
      app.addHook('onClose', async () => { await (await loading)?.close() })
      app.get('/ui/skills/:name', { schema }, async (request, reply) => (await pages()).skill(request, reply))
      app.get('/ui/skills/:name/files/*', { schema }, async (request, reply) => (await pages()).file(request, reply))
      app.get('/ui/status', { schema }, async (request, reply) => (await pages()).status(request, reply))
      app.get('/ui/assets/:name', { schema }, async (request, reply) => (await pages()).asset(request, reply))
      app.get('/ui', { schema }, async (_request, reply) => reply.redirect('./', 308))
      app.get('/ui/', { schema }, async (_request, reply) => reply.redirect('../', 308))
      app.get('/ui/*', { schema }, async (request, reply) => (await pages()).missing(request, reply))
    }
  }
}
