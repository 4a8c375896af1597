import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Access } from '../access/access.ts'
import { sessionToken } from '../access/session.ts'
import type { Manifest } from '../core/shared/skill.ts'
import { sha256 } from '../core/shared/digest.ts'
import type { View } from '../core/view.ts'
import type { SkillsOf } from '../http/callers.ts'
import { strongEtag } from '../http/headers.ts'
import { problemOf } from '../http/problem.ts'
import type { ReadinessParts } from '../http/readiness.ts'
import { prefersPage } from '../http/request/accept.ts'
import type { Validator } from '../verdicts/entry.ts'
import { type MarkdownContext, renderMarkdown, type Rendering } from './markdown/render.ts'
import {
  type Addresses, addressesFrom, type Frame, type Page, readAssets, renderPage, STATE_PLACEHOLDER
} from './pages/layout.ts'
import { problemPage } from './pages/problem.ts'

export interface PagesOptions {
  /** Returns the view of a request. */
  readonly skillsOf: SkillsOf
  /** Validates a skill, as for the catalog. */
  readonly validate: Validator
  readonly version: string
  /** Path prefix of the service. */
  readonly prefix: string
  /** Whether pages follow each change by themselves. */
  readonly isPreview: boolean
  /** Address of the service as its users type it, without a slash at the end. Default: that of each request. */
  readonly publicUrl?: string | undefined
  readonly readiness: ReadinessParts
  /** Absent if everybody may see everything, and nobody signs in. */
  readonly access?: Pick<Access, 'findToken'> | undefined
  /** Returns the error that the caller of a request may see. */
  readonly translate: (error: unknown, request: FastifyRequest) => unknown
}

/** Text of a skill and its place; `level` is that of the heading above it. */
interface ShownText extends Pick<MarkdownContext, 'path' | 'level'> {
  readonly text: string
  readonly manifest: Manifest | undefined
}

/** Request for a page, and all that the page is made from. */
export interface PageRequest extends Pick<PagesOptions, 'validate' | 'readiness'> {
  readonly request: FastifyRequest
  readonly skills: View
  /** Name of the skill in the address, and the path after it. */
  readonly name: string
  readonly path: string
  readonly query: Readonly<Record<string, unknown>>
  readonly addresses: Addresses
  /** Address of the service as the service sees it; the script replaces it by that in the browser's address bar. */
  readonly base: string
  readonly render: (text: ShownText) => Rendering
}

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-robots-tag': 'noindex'
} as const

/** Returns a policy that only allows the page's own script, by its digest: files of skills have the same origin. */
function contentSecurityPolicy ({ scriptIntegrity }: Frame['assets']): string {
  return [
    "default-src 'none'", `script-src '${scriptIntegrity}'`, "style-src 'self'", "img-src 'self'", "connect-src 'self'",
    "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
    "trusted-types 'none'"
  ].join('; ')
}

/** Makes a page, in a file of its own. It reads from the core what the routes of the API read. */
export type PageMaker = (asked: PageRequest) => Promise<Page>

/** Answers requests with pages, with options that all pages share. */
export class Pages {
  readonly #options: PagesOptions
  readonly #assets = readAssets()

  constructor (options: PagesOptions) {
    this.#options = options
  }

  async answer (request: FastifyRequest, reply: FastifyReply, make: PageMaker): Promise<FastifyReply> {
    const frame = this.#frameOf(request)
    try {
      return sendPage(reply, await make(this.#ask(request, frame.addresses)), frame)
    } catch (error) {
      const translated = this.#options.translate(error, request)
      if (!prefersPage(request)) throw translated
      return this.problem(translated, request, reply)
    }
  }

  /** Sends an error as a page to a browser; other clients get the problem document of every route. */
  problem (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const frame = this.#frameOf(request)
    const { name = '' } = request.params as { readonly name?: string }
    return sendPage(reply, problemPage(problemOf(error, request, reply), name, frame.addresses), frame)
  }

  #frameOf (request: FastifyRequest): Frame {
    const { prefix, version, isPreview, access } = this.#options
    const { principal } = request
    const isSignedOut = principal === undefined || principal.kind === 'anonymous'
    const isSignedIn = access !== undefined && sessionToken(request) !== undefined
    const session = isSignedIn && !isSignedOut ? 'in' : access !== undefined && isSignedOut ? 'out' : undefined
    return { addresses: addressesFrom(request.url, prefix), assets: this.#assets, version, isPreview, session }
  }

  #ask (request: FastifyRequest, addresses: Addresses): PageRequest {
    const { skillsOf, validate, readiness, publicUrl, prefix } = this.#options
    const { name = '', '*': path = '' } = request.params as { readonly name?: string, readonly '*'?: string }
    return {
      request,
      skills: skillsOf(request),
      validate,
      readiness,
      name,
      path,
      query: request.query as PageRequest['query'],
      addresses,
      base: publicUrl ?? `${request.protocol}://${request.host}${prefix}`,
      render: ({ path, text, manifest, level }) => renderMarkdown(text, {
        path,
        skillPage: addresses.skill(name),
        bytes: addresses.bytes(name, ''),
        level,
        ...manifest !== undefined && { files: new Set(manifest.files.map((file) => file.path)) }
      })
    }
  }
}

/** Sends a page. Its ETag is the digest of all that it shows, and is in the page for its script. Errors have none. */
function sendPage (reply: FastifyReply, page: Page, frame: Frame): FastifyReply {
  const text = renderPage(page, frame).toString()
  const state = sha256(text)
  if (reply.statusCode < 400) reply.header('etag', strongEtag(state))
  if (page.showsProcessState === true) reply.header('cache-control', 'no-cache')
  return reply
    .headers(HEADERS)
    .header('content-security-policy', contentSecurityPolicy(frame.assets))
    .send(text.replace(STATE_PLACEHOLDER, strongEtag(state).slice(1, -1)))
}
