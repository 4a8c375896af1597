import { forEachInSlices } from '../../core/shared/async.ts'
import { digestIn, type Manifest } from '../../core/shared/skill.ts'
import { unlessRefused } from '../../core/shared/errors.ts'
import type { ChangeFeed } from '../../core/events/change-feed.ts'
import type { SkillSource } from '../../core/skill-source.ts'
import { parseSkillUri } from '../skill-uri.ts'

interface FollowedFilesOptions {
  readonly skills: Pick<SkillSource, 'manifest'>
  readonly feed: Pick<ChangeFeed, 'subscribe'>
  /** Receives the URI of a file that changed, came or went. Must not throw. */
  readonly onChange: (uri: string) => void
  readonly onError: (error: unknown) => void
}

interface FollowedFile {
  readonly path: string
  /** See `stateOf`; undefined before the first comparison. */
  state: string | undefined
  streams: number
}

/**
 * The files that `subscriptions/listen` streams follow, by name of the skill and by URI. The change feed names the skill
 * that changed, and the digests of its manifest tell which of its files did. The feed is subscribed while a stream follows a file.
 * `createMcpDoor` makes one, and MAX_MCP_STREAMS bounds the streams.
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
   * Reports each change after this has resolved, until the signal is aborted. A URI that names no file yet is followed
   * too; text that can name no file is left out.
   */
  async follow (uris: readonly string[], signal: AbortSignal): Promise<void> {
    const followed = [...new Set(uris)].flatMap((uri) => {
      const parts = parseSkillUri(uri)
      return parts === undefined || parts.path === '' ? [] : { uri, ...parts }
    })
    if (followed.length === 0 || signal.aborted) return
    this.#streams++
    // Subscribed before the first comparison, so that no change falls between the two.
    this.#unsubscribe ??= this.#options.feed.subscribe((event) => {
      if ('name' in event) this.#compare(event.name).catch(this.#options.onError)
    })
    signal.addEventListener('abort', () => { this.#unfollow(followed) }, { once: true })
    for (const { name, uri, path } of followed) {
      const files = this.#skills.get(name) ?? new Map<string, FollowedFile>()
      this.#skills.set(name, files)
      const file = files.get(uri)
      if (file === undefined) files.set(uri, { path, state: undefined, streams: 1 })
      else file.streams++
    }
    await forEachInSlices(new Set(followed.map(({ name }) => name)), (name) => this.#compare(name))
  }

  close (): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#skills.clear()
  }

  #unfollow (followed: ReadonlyArray<{ readonly name: string, readonly uri: string }>): void {
    for (const { name, uri } of followed) {
      const files = this.#skills.get(name)
      const file = files?.get(uri)
      if (file !== undefined && --file.streams === 0) files?.delete(uri)
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

  #manifest (name: string): Promise<Manifest | undefined> {
    return unlessRefused(() => this.#options.skills.manifest(name))
  }
}

/** The digest of a file, or the revision for a path that the manifest does not list. It may be another spelling of the main file. */
function stateOf (path: string, manifest: Manifest | undefined): string {
  return manifest === undefined ? 'gone' : digestIn(manifest, path) ?? manifest.revision
}
