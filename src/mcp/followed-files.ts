import { createSlicer } from '../core/async.ts'
import type { ChangeFeed } from '../core/events/change-feed.ts'
import { SkillError } from '../core/errors.ts'
import type { Manifest } from '../core/content/manifest.ts'
import type { SkillSource } from '../core/skill-source.ts'
import { parseSkillUri } from './skill-uri.ts'

export interface FollowedFilesOptions {
  readonly skills: Pick<SkillSource, 'manifest'>
  readonly feed: Pick<ChangeFeed, 'subscribe'>
  /** Told the URI of a file that is not as it was. Must not throw. */
  readonly onChange: (uri: string) => void
  readonly onError: (error: unknown) => void
}

interface FollowedFile {
  readonly path: string
  /** What it was when it was last looked at; undefined until then. */
  state: string | undefined
  followers: number
}

/**
 * The files that open streams want to hear of, by name of the skill and URI. The change feed says which skill has changed,
 * and the digests in its manifest which of the files. Nothing is followed, nor listened to, while no stream wants to hear of a file.
 */
export class FollowedFiles {
  readonly #options: FollowedFilesOptions
  readonly #skills = new Map<string, Map<string, FollowedFile>>()
  #streams = 0
  #unsubscribe: (() => void) | undefined

  constructor (options: FollowedFilesOptions) {
    this.#options = options
  }

  /**
   * Tells each change that is complete after this has resolved, until the signal is aborted. A URI that names no file, or none
   * yet, is followed as well; one that can name none is left out.
   */
  async follow (uris: readonly string[], signal: AbortSignal): Promise<void> {
    const places = [...new Set(uris)].flatMap((uri) => {
      const place = parseSkillUri(uri)
      return place === undefined || place.path === '' ? [] : { uri, ...place }
    })
    if (places.length === 0 || signal.aborted) return
    this.#streams++
    // Before the files are looked at: what changes from then on is told.
    this.#unsubscribe ??= this.#options.feed.subscribe((event) => {
      if (event.type !== 'reset') this.#compare(event.name).catch(this.#options.onError)
    })
    signal.addEventListener('abort', () => { this.#forget(places) }, { once: true })
    for (const { name, uri, path } of places) {
      const files = this.#skills.get(name) ?? new Map<string, FollowedFile>()
      this.#skills.set(name, files)
      const file = files.get(uri)
      if (file === undefined) files.set(uri, { path, state: undefined, followers: 1 })
      else file.followers++
    }
    const yieldIfNeeded = createSlicer()
    for (const name of new Set(places.map(({ name }) => name))) {
      await this.#compare(name)
      await yieldIfNeeded()
    }
  }

  close (): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#skills.clear()
  }

  #forget (places: ReadonlyArray<{ readonly name: string, readonly uri: string }>): void {
    for (const { name, uri } of places) {
      const files = this.#skills.get(name)
      const file = files?.get(uri)
      if (file !== undefined && --file.followers === 0) files?.delete(uri)
      if (files?.size === 0) this.#skills.delete(name)
    }
    if (--this.#streams === 0) this.close()
  }

  async #compare (name: string): Promise<void> {
    if (!this.#skills.has(name)) return
    const manifest = await this.#manifest(name)
    for (const [uri, file] of this.#skills.get(name) ?? []) {
      const before = file.state
      file.state = stateOf(file.path, manifest)
      if (before !== undefined && before !== file.state) this.#options.onChange(uri)
    }
  }

  async #manifest (name: string): Promise<Manifest | undefined> {
    try {
      return await this.#options.skills.manifest(name)
    } catch (error) {
      if (error instanceof SkillError) return undefined
      throw error
    }
  }
}

/** What is read through a path that the manifest does not list may be any file of the skill: another spelling of the main file. */
function stateOf (path: string, manifest: Manifest | undefined): string {
  return manifest?.files.find((file) => file.path === path)?.digest ?? manifest?.revision ?? 'gone'
}
