import { basename } from 'node:path/posix'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import type { Manifest } from '../core/content/manifest.ts'
import { DEFAULT_PAGE_ENTRIES, MAX_QUERY_CODE_POINTS } from '../core/ground/limits.ts'
import { countCodePoints } from '../core/ground/text.ts'
import { skillBody } from '../core/format/main-file.ts'
import type { CatalogEntry } from '../core/listing/entry.ts'
import { readCatalogPage } from '../core/listing/pages.ts'
import type { SkillsOf } from '../access/principal.ts'
import { HttpProblem } from '../http/problem.ts'
import type { EntryVerdicts, Judging } from '../verdicts/index.ts'
import { type Addresses, addressesFrom } from './addresses.ts'
import { readAssets } from './assets.ts'
import { readFile, readSkill } from './content.ts'
import { MarkdownRenderer, type Rendering } from './markdown-renderer.ts'
import { filePage } from './pages/file.ts'
import type { Page } from './pages/layout.ts'
import { type ListQuestion, listPage } from './pages/list.ts'
import { skillPage } from './pages/skill.ts'
import { statusPage } from './pages/status.ts'
import { sendAsset, sendPage, sendProblemPage } from './send.ts'

export interface PagesOptions {
  /** The skills that a request may see. */
  readonly skillsOf: SkillsOf
  /** What other doors have to say about a skill, as in the catalog. */
  readonly judge: Judging
  readonly version: string
  /** Path prefix of the service. */
  readonly prefix: string
  readonly log: FastifyBaseLogger
  /** Pages follow each change by themselves. */
  readonly isPreview: boolean
}

/** A text of a skill, and where it stands. */
interface ShownText {
  readonly name: string
  readonly path: string
  readonly text: string
  readonly digest: string
  readonly manifest: Manifest | undefined
  /** Level of the heading above it. */
  readonly level: number
}

type Query = Readonly<Record<string, unknown>>

/** The pages: each asks the core what the routes of the API ask. */
export class Pages {
  readonly #options: PagesOptions
  readonly #assets = readAssets()
  readonly #markdown: MarkdownRenderer

  constructor (options: PagesOptions) {
    this.#options = options
    this.#markdown = new MarkdownRenderer(options)
  }

  async close (): Promise<void> {
    await this.#markdown.close()
  }

  async list (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { prefix, skillsOf, judge } = this.#options
    const [path = '', query] = request.url.split('?', 2)
    // Relative links need the slash.
    if (!path.endsWith('/')) return reply.redirect(`${basename(prefix)}/${query === undefined ? '' : `?${query}`}`, 308)
    return await this.#answer(request, reply, async (addresses) => {
      const question = readQuestion(request.query as Query)
      const { query, valid, cursor } = question
      const page = await readCatalogPage({ skills: skillsOf(request), judge }, {
        limit: DEFAULT_PAGE_ENTRIES, query, ...valid !== undefined && { valid }, ...cursor !== undefined && { cursor }
      })
      if (page === undefined) throw new HttpProblem('bad_cursor')
      const entries = page.entries.map((text) => JSON.parse(text) as CatalogEntry & EntryVerdicts)
      return listPage({ ...question, ...page, entries, base: this.#base(request) }, addresses)
    })
  }

  skill (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { name } = request.params as { readonly name: string }
    const { skillsOf, judge } = this.#options
    return this.#answer(request, reply, async (addresses) => {
      const { main, ...skill } = await skillsOf(request).read(name, (state) => readSkill(state, judge))
      const body = main === undefined ? '' : skillBody(main.text)
      const rendering = main && await this.#render({ name, path: skill.mainFile, text: body, digest: main.digest, manifest: skill.manifest, level: 2 }, addresses)
      return skillPage({ ...skill, body, rendering, base: this.#base(request) }, addresses)
    })
  }

  file (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { name, '*': path } = request.params as { readonly name: string, readonly '*': string }
    const { view } = request.query as Query
    return this.#answer(request, reply, async (addresses) => {
      const { manifest, digest, ...file } = await this.#options.skillsOf(request).read(name, (state) => readFile(state, path))
      const isMarkdown = /\.mdx?$/i.test(path) && file.text !== undefined
      const text = isMarkdown && view === 'rendered' && digest !== undefined ? { name, path, text: skillBody(file.text ?? ''), digest, manifest, level: 1 } : undefined
      return filePage({ ...file, name, path, isMarkdown, rendering: text && await this.#render(text, addresses) }, addresses)
    })
  }

  status (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    // As of /readyz, callers without credentials learn no more than whether the service is ready.
    if (request.principal?.kind === 'anonymous') throw new HttpProblem('unauthenticated', undefined, { 'www-authenticate': 'Bearer realm="skillserve"' })
    return this.#answer(request, reply, async (addresses) => statusPage(await this.#options.skillsOf(request).freshStatus(), addresses))
  }

  missing (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    return this.#answer(request, reply, async () => { throw new HttpProblem('route_not_found') })
  }

  asset (request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const { name } = request.params as { readonly name: string }
    return sendAsset(reply, this.#assets.find(name))
  }

  async #answer (request: FastifyRequest, reply: FastifyReply, makePage: (addresses: Addresses) => Promise<Page>): Promise<FastifyReply> {
    const { prefix, version, isPreview } = this.#options
    const addresses = addressesFrom(request.url, prefix)
    const frame = { addresses, assets: this.#assets, version, isPreview }
    try {
      return sendPage(reply, await makePage(addresses), frame)
    } catch (error) {
      return sendProblemPage(error, request, reply, frame)
    }
  }

  async #render ({ name, path, text, digest, manifest, level }: ShownText, addresses: Addresses): Promise<Rendering> {
    const files = manifest && new Set(manifest.files.map((file) => file.path))
    const place = { path, skillPage: addresses.skill(name), bytes: addresses.bytes(name, ''), level, ...files && { files } }
    return await this.#markdown.render(JSON.stringify([digest, manifest?.revision, path, place.skillPage]), { text, place })
  }

  /** Address of the service as far as it can know: the script puts in that of the browser's address bar. */
  #base (request: FastifyRequest): string {
    return `${request.protocol}://${request.host}${this.#options.prefix}`
  }
}

/** Other parameters are left alone, as web servers do. */
function readQuestion ({ q, valid, cursor }: Query): ListQuestion {
  const query = typeof q === 'string' ? q.toWellFormed().trim() : ''
  if (countCodePoints(query) > MAX_QUERY_CODE_POINTS) throw new HttpProblem('bad_query', `The search has more than ${MAX_QUERY_CODE_POINTS} characters`)
  return {
    query,
    valid: valid === 'true' ? true : valid === 'false' ? false : undefined,
    cursor: typeof cursor === 'string' && cursor !== '' ? cursor : undefined
  }
}
