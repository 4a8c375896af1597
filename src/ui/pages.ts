import { basename } from 'node:path/posix'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import type { SkillsOf } from '../http/callers.ts'
import type { Manifest } from '../core/content/manifest.ts'
import { skillBody } from '../core/format/main-file.ts'
import { DEFAULT_PAGE_ENTRIES } from '../core/ground/limits.ts'
import type { CatalogEntry } from '../core/listing/entry.ts'
import { readCatalogPage } from '../core/listing/pages.ts'
import { HttpProblem } from '../http/problem.ts'
import { visibleSources } from '../http/readiness.ts'
import type { Sources } from '../sources/sources.ts'
import type { EntryVerdicts, Judging } from '../verdicts/index.ts'
import { prefersPage } from '../http/request/accept.ts'
import { type Addresses, addressesFrom } from './addresses.ts'
import { readAssets } from './assets.ts'
import { type FileChange, readChanges } from './changes.ts'
import { readFile, readSkill } from './content.ts'
import { MarkdownRenderer, type Rendering } from './markdown-renderer.ts'
import { missingFile, missingSkill } from './missing.ts'
import { changesPage, type ShownChange } from './pages/changes.ts'
import { filePage } from './pages/file.ts'
import { folderPage } from './pages/files.ts'
import type { Frame, Page } from './pages/layout.ts'
import { listPage } from './pages/list.ts'
import type { Missing } from './pages/problem.ts'
import { skillPage } from './pages/skill.ts'
import { statusPage } from './pages/status.ts'
import { filterOf, readQuestion } from './question.ts'
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
  /** Address of the service as its users type it, without a slash at the end. Default: that of each request. */
  readonly publicUrl?: string | undefined
  /** The sources that are no folders; undefined without any. */
  readonly sources?: Pick<Sources, 'status' | 'githubOf'> | undefined
  /** What an error is to the caller of a request. */
  readonly translate: (error: unknown, request: FastifyRequest) => unknown
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
      const { query, root, target, cursor } = question
      const skills = skillsOf(request)
      const { valid, filter } = filterOf(question)
      const page = await readCatalogPage({ skills, judge: target === undefined ? judge : (state) => judge(state, [target]) }, {
        limit: DEFAULT_PAGE_ENTRIES, query, valid, root, filter, ...cursor !== undefined && { cursor }
      })
      if (page === undefined) throw new HttpProblem('bad_cursor')
      const entries = page.entries.map((text) => JSON.parse(text) as CatalogEntry & EntryVerdicts).map((entry) => ({ ...entry, root: skills.rootOf(entry.name) }))
      const roots = [...new Set(skills.status.roots.map(({ name }) => name))]
      return listPage({ ...question, ...page, entries, roots, isFiltered: filter !== undefined, base: this.#base(request) }, addresses)
    })
  }

  skill (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { name } = request.params as { readonly name: string }
    const { skillsOf, judge, sources } = this.#options
    const skills = skillsOf(request)
    return this.#answer(request, reply, async (addresses) => {
      const { main, ...skill } = await skills.read(name, (state) => readSkill(state, judge))
      const body = main === undefined ? '' : skillBody(main.text)
      const rendering = main && await this.#render({ name, path: skill.mainFile, text: body, digest: main.digest, manifest: skill.manifest, level: 2 }, addresses)
      const root = skills.rootOf(name)
      const github = root === undefined ? undefined : sources?.githubOf(root)
      return skillPage({ ...skill, body, rendering, base: this.#base(request), root, github }, addresses)
    }, async (error, addresses) => missingSkill(error, skills, name, addresses))
  }

  file (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { name, '*': path = '' } = request.params as { readonly name: string, readonly '*'?: string }
    const { view } = request.query as Query
    const skills = this.#options.skillsOf(request)
    return this.#answer(request, reply, async (addresses) => {
      const shown = await skills.read(name, (state) => readFile(state, path))
      if ('folder' in shown) return folderPage({ name, path: shown.folder, manifest: shown.manifest }, addresses)
      const { manifest, digest, ...file } = shown
      const isMarkdown = /\.mdx?$/i.test(path) && file.text !== undefined
      const text = isMarkdown && view === 'rendered' && digest !== undefined ? { name, path, text: skillBody(file.text ?? ''), digest, manifest, level: 1 } : undefined
      return filePage({ ...file, digest, name, path, isMarkdown, rendering: text && await this.#render(text, addresses) }, addresses)
    }, async (error, addresses) => missingSkill(error, skills, name, addresses) ?? await missingFile(error, skills, name, path, addresses))
  }

  changes (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { name } = request.params as { readonly name: string }
    const { from } = request.query as Query
    const skills = this.#options.skillsOf(request)
    return this.#answer(request, reply, async (addresses) => {
      const { files, ...changes } = await readChanges(skills, name, typeof from === 'string' && from !== '' ? from : undefined)
      // One after the other: the first texts that differ too much leave no time for the others.
      const shown: ShownChange[] = []
      for (const change of files ?? []) shown.push({ ...change, difference: await this.#compare(change) })
      return changesPage({ ...changes, name, files: files && shown }, addresses)
    }, async (error, addresses) => missingSkill(error, skills, name, addresses))
  }

  status (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    return this.#answer(request, reply, async (addresses) => {
      // As of /readyz, callers without credentials learn no more than whether the service is ready.
      if (request.principal?.kind === 'anonymous') throw new HttpProblem('unauthenticated', undefined, { 'www-authenticate': 'Bearer realm="skillserve"' })
      const { skillsOf, sources } = this.#options
      const status = await skillsOf(request).freshStatus()
      return statusPage({ status, sources: visibleSources(sources?.status, status) }, addresses)
    })
  }

  missing (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    return this.#answer(request, reply, async () => { throw new HttpProblem('route_not_found') })
  }

  /** An error that a request met before its page: who asks may not, or asks too often. */
  problem (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    return sendProblemPage(error, request, reply, this.#frameOf(request))
  }

  asset (request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const { name } = request.params as { readonly name: string }
    return sendAsset(reply, this.#assets.find(name))
  }

  async #answer (
    request: FastifyRequest, reply: FastifyReply, makePage: (addresses: Addresses) => Promise<Page>, explain?: (error: unknown, addresses: Addresses) => Promise<Missing | undefined>
  ): Promise<FastifyReply> {
    const frame = this.#frameOf(request)
    try {
      return sendPage(reply, await makePage(frame.addresses), frame)
    } catch (error) {
      const translated = this.#options.translate(error, request)
      if (!prefersPage(request)) throw translated
      return sendProblemPage(translated, request, reply, frame, translated === error ? await explain?.(error, frame.addresses) : undefined)
    }
  }

  #frameOf ({ url }: FastifyRequest): Frame {
    const { prefix, version, isPreview } = this.#options
    return { addresses: addressesFrom(url, prefix), assets: this.#assets, version, isPreview }
  }

  async #render ({ name, path, text, digest, manifest, level }: ShownText, addresses: Addresses): Promise<Rendering> {
    const files = manifest && new Set(manifest.files.map((file) => file.path))
    const place = { path, skillPage: addresses.skill(name), bytes: addresses.bytes(name, ''), level, ...files && { files } }
    return await this.#markdown.render(JSON.stringify([digest, manifest?.revision, path, place.skillPage]), { text, place })
  }

  async #compare ({ texts, key }: FileChange): Promise<string | undefined> {
    const rendering = texts && await this.#markdown.render(`changes ${key}`, texts)
    return rendering !== undefined && 'html' in rendering && rendering.html !== '' ? rendering.html : undefined
  }

  /** Address of the service as far as it can know: the script puts in that of the browser's address bar. */
  #base (request: FastifyRequest): string {
    const { publicUrl, prefix } = this.#options
    return publicUrl ?? `${request.protocol}://${request.host}${prefix}`
  }
}
