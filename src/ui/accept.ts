import type { FastifyRequest } from 'fastify'
import { prefers } from '../http/request/accept.ts'

/** Whether a request is one of a browser that opens an address. Programs, which take anything, get JSON. */
export function prefersPage ({ headers }: FastifyRequest): boolean {
  return prefers(headers.accept, ['application/json', 'text/html']) === 'text/html'
}
