import { basename } from 'node:path/posix'
import type { FastifyError, FastifyPluginAsync, FastifyReply, FastifyRequest, preValidationAsyncHookHandler } from 'fastify'
import { lazyCode } from '../core/files/load-code.ts'
import { Lazy } from '../core/shared/async.ts'
import { overloadError } from '../core/shared/errors.ts'
import { own } from '../core/shared/json.ts'
import { addVary } from '../http/headers.ts'
import type { RouteReads } from '../http/observer.ts'
import { HttpProblem } from '../http/problem.ts'
import { prefersPage } from '../http/request/accept.ts'
import type { Weight } from '../http/request/weight.ts'
import type { PageMaker, Pages, PagesOptions } from './pages.ts'

type LoadPage = () => Promise<{ readonly page: PageMaker }>

/** Every page by its address: a new one is a file and a row here. What makes it is loaded when it is asked for. */
const PAGES: Readonly<Record<string, { readonly load: LoadPage, readonly reads: RouteReads }>> = {
  '/ui/skills/:name': { load: lazyCode(() => import('./pages/skill.ts')), reads: { event: 'skill.read', door: 'ui' } },
  '/ui/skills/:name/changes': { load: lazyCode(() => import('./pages/changes.ts')), reads: { event: 'skill.read', door: 'ui' } },
  '/ui/skills/:name/files': { load: lazyCode(() => import('./pages/file.ts')), reads: { event: 'skill.read', door: 'ui' } },
  '/ui/skills/:name/files/*': { load: lazyCode(() => import('./pages/file.ts')), reads: { event: 'skill.file_read', door: 'ui' } },
  '/ui/status': { load: lazyCode(() => import('./pages/status.ts')), reads: 'nothing' }
}

/** Where people look for the list above its pages, and the way to it from there. */
const HOMES = { '/ui': './', '/ui/': '../', '/ui/skills': '../', '/ui/skills/': '../../' } as const

const LIST: RouteReads = { event: 'skill.list', door: 'ui' }

interface CatalogPages {
  readonly forBrowsers: ForBrowsers
  /** Answers a browser whose address below `/ui/` the router refuses; throws the error for everybody else. */
  readonly answerBadUrl: ForBrowsers['errorHandler']
  /** Everything below `/ui/`. */
  readonly routes: FastifyPluginAsync
}

const loadPages = lazyCode(() => import('./pages.ts'))
const loadList: LoadPage = lazyCode(() => import('./pages/list.ts'))

/** What a route that answers programs does for browsers. */
interface ForBrowsers {
  readonly config: { readonly reads: (request: FastifyRequest) => RouteReads, readonly weight: (request: FastifyRequest) => Weight | undefined }
  /** Answers them; for others the route goes on. */
  readonly preValidation: preValidationAsyncHookHandler
  /** Answers them with what went wrong before. */
  readonly errorHandler: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>
}

/** The catalog for people. It costs its routes, until the first page is asked for. */
export function catalogPages ({ isOverloaded, ...options }: PagesOptions & { readonly isOverloaded: () => boolean }): CatalogPages {
  const pages = new Lazy<Pages>(async () => {
    const { Pages } = await loadPages()
    return new Pages(options)
  })

  async function show (request: FastifyRequest, reply: FastifyReply, loadPage: LoadPage): Promise<FastifyReply> {
    const [all, { page }] = await Promise.all([pages.get(), loadPage()])
    return await all.answer(request, reply, page)
  }

  async function errorHandler (error: FastifyError, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    // Thrown on to the handler of the service, which knows everybody else's form.
    if (!prefersPage(request)) throw error
    return (await pages.get()).problem(error, request, reply)
  }

  return {
    forBrowsers: {
      config: {
        reads: (request) => prefersPage(request) ? LIST : 'nothing',
        weight: (request) => prefersPage(request) && hasSearch(request) ? 'costly' : undefined
      },
      async preValidation (request, reply) {
        // Of the server as a whole: no page.
        if (request.url === '*') return
        addVary(reply, 'Accept')
        if (!prefersPage(request)) return
        // It has entries, as the list of the API has.
        if (isOverloaded()) throw overloadError.busy()
        // Relative links need the slash.
        if (request.url.split('?', 1)[0]?.endsWith('/') === false) await redirect(`${basename(options.prefix)}/`, request, reply)
        else await show(request, reply, loadList)
      },
      errorHandler
    },
    async answerBadUrl (error, request, reply) {
      if (!request.url.startsWith(`${options.prefix}/ui/`)) throw error
      return await errorHandler(error, request, reply)
    },
    async routes (app) {
      const schema = { hide: true }
      app.setErrorHandler(errorHandler)
      app.addHook('onClose', async () => { await (await pages.peek())?.close() })
      for (const [address, { load, reads }] of Object.entries(PAGES)) app.get(address, { schema, config: { reads } }, (request, reply) => show(request, reply, load))
      const config = { reads: 'nothing' } as const
      // Open to all: the page that refuses a caller has a style too.
      app.get('/ui/assets/:name', { schema, config: { isOpen: true } }, async (request, reply) => (await pages.get()).asset(request, reply))
      for (const [address, home] of Object.entries(HOMES)) app.get(address, { schema, config }, (request, reply) => redirect(home, request, reply))
      // For an address that leads nowhere too, the error handler of these routes decides on the form.
      await app.register(async (below) => { below.setNotFoundHandler(() => { throw new HttpProblem('route_not_found') }) }, { prefix: '/ui' })
    }
  }
}

/** To another address of the same page, with what was asked of it. */
async function redirect (address: string, { url }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const query = url.indexOf('?')
  return reply.redirect(query === -1 ? address : address + url.slice(query), 308)
}

/** Whether the list is one of matches. Its form sends an empty field too. */
function hasSearch ({ query }: FastifyRequest): boolean {
  const text = own(query, 'q')
  return text !== undefined && text !== ''
}
