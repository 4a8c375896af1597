import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import type { Manifest } from '../core/shared/skill.ts'
import type { SkillService } from '../core/service.ts'
import type { SkillsOf } from '../http/callers.ts'
import type { ReadinessParts } from '../http/readiness.ts'
import { prefersPage } from '../http/request/accept.ts'
import type { Sources } from '../sources/sources.ts'
import type { Judging } from '../verdicts/index.ts'
import { type Addresses, addressesFrom } from './addresses.ts'
import { type Assets, readAssets } from './assets.ts'
import { renderMarkdown, type Rendering } from './markdown/render.ts'
import type { Frame, Page } from './pages/layout.ts'
import type { Missing } from './pages/problem.ts'
import { sendPage, sendProblemPage } from './send.ts'

/** The HTML of all kept texts together, in UTF-16 code units: a text that takes its parser long is rendered once. */
const MAX_KEPT_CHARACTERS = 8_388_608

export interface PagesOptions {
  /** The skills that a request may see. */
  readonly skillsOf: SkillsOf
  /** Validates a skill, as for the catalog. */
  readonly judge: Judging
  readonly version: string
  /** Path prefix of the service. */
  readonly prefix: string
  readonly log: FastifyBaseLogger
  /** Pages follow each change by themselves. */
  readonly isPreview: boolean
  /** Address of the service as its users type it, without a slash at the end. Default: that of each request. */
  readonly publicUrl?: string | undefined
  /** The sources other than folders; undefined without any. */
  readonly sources?: Pick<Sources, 'githubOf'> | undefined
  readonly readiness: ReadinessParts
  /** What an error is to the caller of a request. */
  readonly translate: (error: unknown, request: FastifyRequest) => unknown
}

/** A text of a skill, and where it stands. */
interface ShownText {
  readonly path: string
  readonly text: string
  readonly digest: string
  readonly manifest: Manifest | undefined
  /** Level of the heading above it. */
  readonly level: number
}

/** A request for a page, and what the page is made with. */
interface PageRequest extends Pick<PagesOptions, 'judge' | 'sources' | 'readiness'> {
  readonly request: FastifyRequest
  readonly skills: SkillService
  /** Of the skill in the address, and the path behind it. */
  readonly name: string
  readonly path: string
  readonly query: Readonly<Record<string, unknown>>
  readonly addresses: Addresses
  /** Address of the service as far as it can know: the script puts in that of the browser's address bar. */
  readonly base: string
  readonly render: (text: ShownText) => Rendering
}

/** A page, in a file of its own. It asks the core what the routes of the API ask. */
export interface PageMaker {
  readonly make: (asked: PageRequest) => Promise<Page>
  /** What may have been meant by an address that leads nowhere. */
  readonly explain?: (error: unknown, asked: PageRequest) => Promise<Missing | undefined>
}

/** What all pages have in common. */
export class Pages {
  readonly #options: PagesOptions
  readonly #assets: Assets
  readonly #rendered = new LRUCache<string, Rendering>({
    maxSize: MAX_KEPT_CHARACTERS,
    sizeCalculation: (rendering, key) => key.length + ('html' in rendering ? rendering.html.length : 0)
  })

  constructor (options: PagesOptions) {
    this.#options = options
    this.#assets = readAssets()
  }

  async answer (request: FastifyRequest, reply: FastifyReply, { make, explain }: PageMaker): Promise<FastifyReply> {
    const frame = this.#frameOf(request)
    const asked = this.#ask(request, frame.addresses)
    try {
      return sendPage(reply, await make(asked), frame)
    } catch (error) {
      const translated = this.#options.translate(error, request)
      if (!prefersPage(request)) throw translated
      const missing = translated === error ? await explain?.(error, asked) : undefined
      return sendProblemPage(translated, request, reply, frame, missing)
    }
  }

  /** An error that a request met before its page: the caller may not see it, or asks too often. */
  problem (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const frame = this.#frameOf(request)
    return sendProblemPage(error, request, reply, frame)
  }

  #frameOf ({ url }: FastifyRequest): Frame {
    const { prefix, version, isPreview } = this.#options
    return { addresses: addressesFrom(url, prefix), assets: this.#assets, version, isPreview }
  }

  #ask (request: FastifyRequest, addresses: Addresses): PageRequest {
    const { skillsOf, judge, sources, readiness, publicUrl, prefix } = this.#options
    const { name = '', '*': path = '' } = request.params as { readonly name?: string, readonly '*'?: string }
    return {
      request,
      skills: skillsOf(request),
      judge,
      sources,
      readiness,
      name,
      path,
      query: request.query as PageRequest['query'],
      addresses,
      base: publicUrl ?? `${request.protocol}://${request.host}${prefix}`,
      render: (text) => this.#render(text, name, addresses)
    }
  }

  #render ({ path, text, digest, manifest, level }: ShownText, name: string, addresses: Addresses): Rendering {
    const skillPage = addresses.skill(name)
    const key = JSON.stringify([digest, manifest?.revision, path, skillPage])
    const kept = this.#rendered.get(key)
    if (kept !== undefined) return kept
    const files = manifest && new Set(manifest.files.map((file) => file.path))
    const context = { path, skillPage, bytes: addresses.bytes(name, ''), level, ...files && { files } }
    const rendering = renderMarkdown(text, context)
    this.#rendered.set(key, rendering)
    return rendering
  }
}
