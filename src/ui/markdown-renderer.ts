import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { FastifyBaseLogger } from 'fastify'
import { LRUCache } from 'lru-cache'
import { createQueue } from '../core/shared/async.ts'
import type { MarkdownContext } from './markdown/render.ts'

/**
 * Markdown of skills, and what differs between two texts, as HTML for the pages. A text can be made to take the parser a second, in which nothing else would be
 * answered. A thread of its own therefore renders, with a deadline. Measured: 9 KB take 0.7 ms, 256 KiB of `![` 1.1 s.
 */

/** Longest text that is rendered, in UTF-16 code units; 99 % of real SKILL.md files have less than 32 KB. */
export const MAX_MARKDOWN_CHARACTERS = 262_144

/** Time for one text, and how long a request waits for its own, in milliseconds. */
const RENDER_MS = 600

/** How long such a text is not tried again, in milliseconds: a busy machine may have been the reason. */
const SLOW_KEPT_MS = 60_000

/** The HTML of all kept texts together, in UTF-16 code units, and of one. A hidden character becomes a mark of 80. */
const MAX_KEPT_CHARACTERS = 8_388_608
const MAX_HTML_CHARACTERS = 2_097_152

/** The thread ends after so long without work, in milliseconds: it has 20 MB. */
const IDLE_MS = 30_000

/** A bound for the thread's heap, in MB: beyond it the thread ends, and the service goes on. */
const MAX_HEAP_MB = 128

/** Two folders below the package's own, as every module of `src`, of `dist` and of its bundle that may hold this line. */
const WORKER = new URL('../../dist/ui/markdown-worker.js', import.meta.url)

/** What the thread is sent: a text in Markdown, or two texts to be compared. */
export type RenderJob = { readonly text: string, readonly context: MarkdownContext } | { readonly before: string, readonly after: string }

/** HTML, or why a text is shown as it is. */
export type Rendering = { readonly html: string } | { readonly plain: 'large' | 'slow' | 'deep' }

const SLOW: Rendering = { plain: 'slow' }
const LARGE: Rendering = { plain: 'large' }
const DEEP: Rendering = { plain: 'deep' }

interface MarkdownRendererOptions {
  readonly log: Pick<FastifyBaseLogger, 'warn'>
  /** Default RENDER_MS. */
  readonly renderMs?: number
  /** Milliseconds of a clock that never goes back. Default: the process's. */
  readonly now?: () => number
}

/** The thread, and when it has loaded what it needs: that is not the time of the text which is the first. */
interface Started {
  readonly worker: Worker
  readonly ready: Promise<unknown>
}

export class MarkdownRenderer {
  readonly #options: MarkdownRendererOptions
  readonly #enter = createQueue()
  readonly #kept: LRUCache<string, Rendering, { readonly job: RenderJob }>
  #started: Started | undefined
  #idle: NodeJS.Timeout | undefined

  constructor (options: MarkdownRendererOptions) {
    this.#options = options
    this.#kept = new LRUCache<string, Rendering, { readonly job: RenderJob }>({
      maxSize: MAX_KEPT_CHARACTERS,
      // A text that loses its place while it is rendered still has requests that wait for it.
      ignoreFetchAbort: true,
      sizeCalculation: (rendering) => 1_000 + ('html' in rendering ? rendering.html.length : 0),
      ttlResolution: 0,
      ...options.now !== undefined && { perf: { now: options.now } },
      fetchMethod: async (_key, _stale, { context, options }) => {
        const rendering = await this.#enter(() => this.#render(context.job))
        if (rendering === SLOW) options.ttl = SLOW_KEPT_MS
        return rendering
      }
    })
  }

  /**
   * The text as HTML, once for each key.
   * @param key names the text and everything of the context that the HTML depends on
   */
  async render (key: string, job: RenderJob): Promise<Rendering> {
    if ('text' in job && job.text.length > MAX_MARKDOWN_CHARACTERS) return LARGE
    const kept = this.#kept.get(key)
    if (kept !== undefined) return kept
    await (this.#started ??= this.#start()).ready.catch(() => {})
    // Behind texts that take long: whoever asks has the plain text meanwhile.
    const deadline = new AbortController()
    const late = sleep(this.#renderMs, SLOW, { signal: deadline.signal }).catch(() => SLOW)
    try {
      return await Promise.race([this.#kept.fetch(key, { context: { job } }), late]) ?? SLOW
    } finally {
      deadline.abort()
    }
  }

  async close (): Promise<void> {
    clearTimeout(this.#idle)
    await this.#started?.worker.terminate()
    this.#started = undefined
  }

  get #renderMs (): number {
    return this.#options.renderMs ?? RENDER_MS
  }

  /** Undefined, which is not kept, when the thread cannot start. */
  async #render (job: RenderJob): Promise<Rendering | undefined> {
    clearTimeout(this.#idle)
    const started = this.#started ??= this.#start()
    const { worker } = started
    try {
      await started.ready
    } catch (err) {
      this.#options.log.warn({ err }, 'the thread that renders texts of skills cannot start: they are shown as they are')
      if (this.#started === started) this.#started = undefined
      return undefined
    }
    const deadline = new AbortController()
    const timer = setTimeout(() => { deadline.abort() }, this.#renderMs)
    try {
      worker.postMessage(job)
      const [html] = await once(worker, 'message', { signal: deadline.signal }) as [string | undefined]
      if (html === undefined) return DEEP
      return html.length > MAX_HTML_CHARACTERS ? LARGE : { html }
    } catch (err) {
      if (!deadline.signal.aborted) this.#options.log.warn({ err }, 'a text of a skill could not be rendered: it is shown as it is')
      if (this.#started === started) this.#started = undefined
      void worker.terminate()
      return SLOW
    } finally {
      clearTimeout(timer)
      this.#idle = setTimeout(() => { void this.close() }, IDLE_MS).unref()
    }
  }

  #start (): Started {
    const worker = new Worker(WORKER, { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB }, execArgv: [], env: {}, stdin: false })
    // Between two jobs nobody else listens; during a job `once` rejects as well.
    worker.on('error', () => {})
    // A worker that ends sends no `message`: whoever waits learns it as an error.
    worker.on('exit', (code) => { if (this.#started?.worker === worker) { this.#started = undefined; worker.emit('error', new Error(`the thread ended with ${code}`)) } })
    worker.unref()
    // Its first message says so.
    const ready = once(worker, 'message')
    ready.catch(() => {})
    return { worker, ready }
  }
}
