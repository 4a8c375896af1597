import type { FastifyRequest } from 'fastify'
import { prefersPage } from '../http/request/accept.ts'

/** Name of the cookie with the token of a person who has signed in to the pages. */
export const SESSION_COOKIE = 'skillserve_token'

/**
 * Reads the token from the cookie of a request for a page. APIs do not accept the cookie, since a page of another site
 * could make a browser send it: then this is undefined.
 */
export function sessionToken (request: FastifyRequest): string | undefined {
  const { headers: { authorization, cookie }, is404, routeOptions: { config }, server } = request
  const isPage = (config.isPage === true || is404) && prefersPage(request)
  return isPage && authorization === undefined && cookie !== undefined
    ? server.parseCookie(cookie)[SESSION_COOKIE]
    : undefined
}
