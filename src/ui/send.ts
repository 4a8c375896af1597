import type { FastifyReply, FastifyRequest } from 'fastify'
import { sha256 } from '../core/shared/digest.ts'
import { strongEtag } from '../http/etag.ts'
import { problemOf } from '../http/problem.ts'
import { type Frame, type Page, renderPage, STATE_PLACEHOLDER } from './pages/layout.ts'
import { problemPage } from './pages/problem.ts'
import type { Problem } from '../schemas/problem.ts'

/** Sentences that replace those with a path of the server, and those for programs. */
const FOR_PEOPLE: Partial<Record<Problem['code'], { readonly title?: string, readonly sentence: string }>> = {
  skills_folder_not_found: {
    sentence: 'The folder of skills is missing. The service picks it up as soon as it appears; its log names the folder'
  },
  route_not_found: { title: 'Page not found', sentence: 'No page has this address' },
  unauthenticated: { sentence: 'These skills are only for callers with a token' }
}

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-robots-tag': 'noindex'
} as const

/** Nothing but the page's own script runs, by its digest: files of skills are on the same origin. */
function contentSecurityPolicy ({ scriptIntegrity }: Frame['assets']): string {
  return [
    "default-src 'none'", `script-src '${scriptIntegrity}'`, "style-src 'self'", "img-src 'self'", "connect-src 'self'",
    "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
    "trusted-types 'none'"
  ].join('; ')
}

/** The ETag names everything that the page shows; the page holds it too, for its script. An error has none. */
export function sendPage (reply: FastifyReply, page: Page, frame: Frame): FastifyReply {
  const text = renderPage(page, frame).toString()
  const state = sha256(text)
  if (reply.statusCode < 400) reply.header('etag', strongEtag(state))
  if (page.isOfProcess === true) reply.header('cache-control', 'no-cache')
  return reply
    .headers(HEADERS)
    .header('content-security-policy', contentSecurityPolicy(frame.assets))
    .send(text.replace(STATE_PLACEHOLDER, strongEtag(state).slice(1, -1)))
}

/** An error as a page, for a browser: other clients get the problem that every route gives. */
export function sendProblemPage (error: unknown, request: FastifyRequest, reply: FastifyReply, frame: Frame) {
  const { status, code, error: text, detail, ...problem } = problemOf(error, request, reply)
  // The hints of other problems name addresses of the API.
  const { title = problem.title, sentence } = FOR_PEOPLE[code] ?? { sentence: status === 403 ? detail : text }
  const { name = '' } = request.params as { readonly name?: string }
  return sendPage(reply, problemPage({ status, code, title, sentence, name }, frame.addresses), frame)
}
