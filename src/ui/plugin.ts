import { basename } from 'node:path/posix'
import fastifyStatic from '@fastify/static'
import type { FastifyError, FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { overloadError } from '../core/shared/errors.ts'
import { own } from '../core/shared/json.ts'
import { addVary } from '../http/headers.ts'
import { HttpProblem } from '../http/problem.ts'
import { prefersPage } from '../http/request/accept.ts'
import type { RouteReads } from '../http/route-config.ts'
import { type PageMaker, Pages, type PagesOptions } from './pages.ts'
import { page as changes } from './pages/changes.ts'
import { page as file } from './pages/file.ts'
import { ASSETS_FOLDER, readAssets } from './pages/layout.ts'
import { page as list } from './pages/list.ts'
import { page as skill } from './pages/skill.ts'
import { page as status } from './pages/status.ts'
import { signInRoutes } from './sign-in.ts'

const SKILL_READ: RouteReads = { event: 'skill.read', api: 'ui' }
const FILE_READ: RouteReads = { event: 'skill.file_read', api: 'ui' }
const LIST_READ: RouteReads = { event: 'skill.list', api: 'ui' }

/** Pages by address. A new page is a file and a row here. */
const PAGES: ReadonlyArray<readonly [address: string, page: PageMaker, reads: RouteReads]> = [
  ['/ui/skills/:name', skill, SKILL_READ],
  ['/ui/skills/:name/changes', changes, SKILL_READ],
  ['/ui/skills/:name/files', file, SKILL_READ],
  ['/ui/skills/:name/files/*', file, FILE_READ],
  ['/ui/status', status, 'nothing']
]

/** Other addresses at which people expect the list, and the relative path to it from there. */
const HOMES = { '/ui': './', '/ui/': '../', '/ui/skills': '../', '/ui/skills/': '../../' } as const

/**
 * Creates the catalog for people: `forBrowsers` are options of a route that answers programs too, and `routes`
 * registers all pages below `/ui/`.
 */
export function catalogPages (options: PagesOptions) {
  const pages = new Pages(options)

  async function errorHandler (error: FastifyError, request: FastifyRequest, reply: FastifyReply) {
    // The handler of the service knows the form for other clients.
    if (!prefersPage(request)) throw error
    return pages.problem(error, request, reply)
  }

  return {
    forBrowsers: {
      config: {
        isPage: true,
        reads: (request: FastifyRequest): RouteReads => prefersPage(request) ? LIST_READ : 'nothing',
        // A form with an empty field is no search.
        weight: (request: FastifyRequest) =>
          prefersPage(request) && (own(request.query, 'q') ?? '') !== '' ? 'costly' as const : undefined
      },
      async preValidation (request: FastifyRequest, reply: FastifyReply) {
        // `OPTIONS *` is about the server as a whole.
        if (request.url === '*') return
        addVary(reply, 'Accept')
        if (!prefersPage(request)) return
        // Like the list of the API, the page reads entries.
        if (request.server.isUnderPressure()) throw overloadError.busy()
        // Relative links only work with a slash at the end.
        if (request.url.split('?', 1)[0]?.endsWith('/') === false) {
          await redirect(`${basename(options.prefix)}/`, request, reply)
        } else await pages.answer(request, reply, list)
      },
      errorHandler
    },
    async routes (app: FastifyInstance) {
      const schema = { hide: true }
      app.setErrorHandler(errorHandler)
      for (const [address, page, reads] of PAGES) {
        const config = { reads, isPage: true }
        app.get(address, { schema, config }, (request, reply) => pages.answer(request, reply, page))
      }
      for (const [address, home] of Object.entries(HOMES)) {
        app.get(address, { schema, config: { reads: 'nothing' } }, (request, reply) => redirect(home, request, reply))
      }
      if (options.access !== undefined) signInRoutes(app, { ...options, pages, access: options.access })
      await app.register(assets)
      // The error handler of these routes also decides on the form of the answer for an unknown address.
      await app.register(async (below) => {
        below.setNotFoundHandler(() => { throw new HttpProblem('route_not_found') })
      }, { prefix: '/ui' })
    }
  }
}

/** Serves style, script and icon, under addresses that change with their content. */
const assets: FastifyPluginAsync = async function assets (app) {
  // The page that refuses a caller needs its style, too.
  app.addHook('onRoute', (route) => { Object.assign(route.config ??= {}, { isOpen: true }) })
  await app.register(fastifyStatic, {
    root: ASSETS_FOLDER,
    prefix: `/${readAssets().path}`,
    wildcard: false,
    decorateReply: false,
    // Headers must not depend on the time of a file, which differs between replicas.
    etag: false,
    lastModified: false,
    maxAge: '365d',
    immutable: true,
    setHeaders (response) {
      response.setHeader('cross-origin-resource-policy', 'same-origin')
      response.setHeader('content-security-policy', "default-src 'none'; sandbox")
    }
  })
}

/** Redirects to another address of the same page, and keeps the query. */
async function redirect (address: string, { url }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const query = url.indexOf('?')
  return reply.redirect(query === -1 ? address : address + url.slice(query), 308)
}
