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

/** Every page by its address: a new one is a file and a row here. */
const PAGES: ReadonlyArray<readonly [address: string, page: PageMaker, reads: RouteReads]> = [
  ['/ui/skills/:name', skill, SKILL_READ],
  ['/ui/skills/:name/changes', changes, SKILL_READ],
  ['/ui/skills/:name/files', file, SKILL_READ],
  ['/ui/skills/:name/files/*', file, FILE_READ],
  ['/ui/status', status, 'nothing']
]

/** Where people look for the list above its pages, and the way to it from there. */
const HOMES = { '/ui': './', '/ui/': '../', '/ui/skills': '../', '/ui/skills/': '../../' } as const

/**
 * The catalog for people: `forBrowsers` answers them at an address that answers programs too, and `routes` are all
 * pages below `/ui/`.
 */
export function catalogPages (options: PagesOptions) {
  const pages = new Pages(options)

  async function errorHandler (error: FastifyError, request: FastifyRequest, reply: FastifyReply) {
    // Thrown on to the handler of the service, which knows the form for other clients.
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
        // It has entries, as the list of the API has.
        if (request.server.isUnderPressure()) throw overloadError.busy()
        // Relative links need the slash.
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
      // For an address that leads nowhere too, the error handler of these routes decides on the form.
      await app.register(async (below) => {
        below.setNotFoundHandler(() => { throw new HttpProblem('route_not_found') })
      }, { prefix: '/ui' })
    }
  }
}

/** Style, script and icon, under addresses that change with their content. */
const assets: FastifyPluginAsync = async function assets (app) {
  // The page that refuses a caller has a style too.
  app.addHook('onRoute', (route) => { Object.assign(route.config ??= {}, { isOpen: true }) })
  await app.register(fastifyStatic, {
    root: ASSETS_FOLDER,
    prefix: `/${readAssets().path}`,
    wildcard: false,
    decorateReply: false,
    // Nothing in an answer depends on the time of a file, which differs between replicas.
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

/** To another address of the same page, with what was asked of it. */
async function redirect (address: string, { url }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const query = url.indexOf('?')
  return reply.redirect(query === -1 ? address : address + url.slice(query), 308)
}
