import type { FastifyError, FastifyPluginAsync, FastifyReply, FastifyRequest, preValidationAsyncHookHandler } from 'fastify'
import { addVary } from '../http/headers.ts'
import { prefersPage } from '../http/request/accept.ts'
import type { Pages, PagesOptions } from './pages.ts'

export interface CatalogPages {
  readonly forBrowsers: ForBrowsers
  /** Everything below `/ui/`. */
  readonly routes: FastifyPluginAsync
}

/** What a route that answers programs does for browsers. */
export interface ForBrowsers {
  readonly config: { readonly hasPage: true }
  /** Answers them; for others the route goes on. */
  readonly preValidation: preValidationAsyncHookHandler
  /** Answers them with what went wrong before. */
  readonly errorHandler: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>
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

  async function errorHandler (error: FastifyError, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    // Thrown on to the handler of the service, which knows everybody else's form.
    if (!prefersPage(request)) throw error
    return (await pages()).problem(error, request, reply)
  }

  return {
    forBrowsers: {
      config: { hasPage: true },
      async preValidation (request, reply) {
        // Of the server as a whole: no page.
        if (request.url === '*') return
        addVary(reply, 'Accept')
        if (prefersPage(request)) await (await pages()).list(request, reply)
      },
      errorHandler
    },
    async routes (app) {
      const schema = { hide: true }
      app.setErrorHandler(errorHandler)
      app.addHook('onClose', async () => { await (await loading)?.close() })
      app.get('/ui/skills/:name', { schema }, async (request, reply) => (await pages()).skill(request, reply))
      app.get('/ui/skills/:name/changes', { schema }, async (request, reply) => (await pages()).changes(request, reply))
      app.get('/ui/skills/:name/files', { schema }, async (request, reply) => (await pages()).file(request, reply))
      app.get('/ui/skills/:name/files/*', { schema }, async (request, reply) => (await pages()).file(request, reply))
      app.get('/ui/status', { schema }, async (request, reply) => (await pages()).status(request, reply))
      // Open to all: the page that refuses a caller has a style too.
      app.get('/ui/assets/:name', { schema, config: { isOpen: true } }, async (request, reply) => (await pages()).asset(request, reply))
      app.get('/ui', { schema }, async (_request, reply) => reply.redirect('./', 308))
      app.get('/ui/', { schema }, async (_request, reply) => reply.redirect('../', 308))
      app.get('/ui/*', { schema }, async (request, reply) => (await pages()).missing(request, reply))
    }
  }
}
