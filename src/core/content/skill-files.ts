import { createArchive, type SkillArchive } from './archive.ts'
import { BackgroundQueue } from './background-queue.ts'
import type { IndexedSkill } from '../catalog/catalog.ts'
import { ContentStore, type ServableFile } from './file-store.ts'
import type { Disk } from '../disk/disk.ts'
import { documentError, fileError, SkillError } from '../errors.ts'
import type { FileContent } from './file-content.ts'
import { isNoMainFile, orderMainFiles } from '../catalog/main-files.ts'
import { MAX_MAIN_FILE_BYTES, MAX_TEXT_FILE_BYTES } from '../limits.ts'
import type { CoreLog } from '../log.ts'
import { type Inspection, type Manifest, type ManifestFile, ManifestStore, type SkillState } from './manifest.ts'
import { PhaseMemo, type PhaseStats } from '../disk/poll-phase.ts'
import { documentSentence, fileSentence } from './refusal-sentences.ts'
import { parseRelativePath } from '../disk/relative-path.ts'
import { hasForbiddenSequence } from '../skill-name.ts'
import { RefusedError } from '../disk/open-inside.ts'
import type { MainFilePreference } from '../catalog/main-files.ts'
import type { Awaitable } from '../async.ts'

export interface SkillFilesOptions {
  readonly stats: PhaseStats
  readonly log: CoreLog
  readonly diskOf: (skill: IndexedSkill) => Disk
  /**
   * What `answer` makes of the skill of this name, asked anew while the skill changes under the question.
   * @throws {SkillError} when there is no such skill
   */
  readonly ask: <T>(name: string, answer: (skill: IndexedSkill) => Promise<T>, discard?: (value: T) => unknown) => Promise<T>
}

/** A file of a manifest, with the revision of that. */
interface ListedFile extends Pick<ManifestFile, 'digest'> {
  readonly revision: string
}

/** How often a file is read anew when it is not the one that the manifest lists. */
const MAX_TURNS = 3

/** What is in the skills: main files, files, and all of them together. Every failure is a `SkillError`. */
export class SkillFiles {
  readonly #options: SkillFilesOptions
  readonly #contents: ContentStore
  readonly #manifests: ManifestStore
  readonly #mainFiles: Readonly<Record<MainFilePreference, PhaseMemo<FileContent>>>
  readonly #files: PhaseMemo<FileContent>
  /** Skills whose manifest takes longer than an answer may wait for its revision. */
  readonly #awaited = new BackgroundQueue((name) => this.#makeManifest(name))

  constructor (options: SkillFilesOptions) {
    const { stats } = options
    this.#options = options
    this.#contents = new ContentStore(stats)
    this.#manifests = new ManifestStore(this.#contents)
    this.#mainFiles = { 'SKILL.MD': new PhaseMemo(stats), 'SKILL.md': new PhaseMemo(stats) }
    this.#files = new PhaseMemo(stats)
  }

  readMainFile (name: string, preference: MainFilePreference): Awaitable<FileContent> {
    return this.#mainFiles[preference].get(name) ?? this.#findMainFile(name, preference)
  }

  readFile (name: string, filePath: string): Awaitable<FileContent> {
    return this.#files.get(fileKey(name, filePath)) ?? this.#findFile(name, filePath)
  }

  openFile (name: string, filePath: string): Awaitable<ServableFile> {
    const content = this.#files.get(fileKey(name, filePath))
    return content === undefined ? this.#openFile(name, filePath) : { kind: 'content', content }
  }

  manifest (name: string): Promise<Manifest> {
    return this.#askWhole(name, async (disk, skill) => (await this.#manifests.get(disk, skill)).manifest)
  }

  archive (name: string, nameOf?: (path: string) => string): Promise<SkillArchive> {
    return this.#askWhole(name, (disk, skill) => createArchive({ disk, skill, manifests: this.#manifests, nameOf }))
  }

  stamp (name: string): Promise<string | undefined> {
    return this.#askWhole(name, (disk, skill) => this.#manifests.stamp(disk, skill))
  }

  /** See `ManifestStore.inspect`. */
  inspect (skill: IndexedSkill, known?: SkillState): Promise<Inspection> {
    return this.#manifests.inspect(this.#options.diskOf(skill), skill, known)
  }

  /** Something may have changed in a skill, or in all of them: the next answer looks at all files before it names a revision. */
  doubt (skill?: IndexedSkill): void {
    this.#manifests.doubt(skill)
  }

  /** Returns when nothing is worked on in the background any more. */
  async close (): Promise<void> {
    this.#manifests.close()
    await this.#awaited.close()
  }

  async #findMainFile (name: string, preference: MainFilePreference): Promise<FileContent> {
    if (hasForbiddenSequence(name)) throw documentError.invalidName(name)
    const { stats, ask } = this.#options
    const { phase } = stats
    const content = await ask(name, (skill) => this.#readMainFile(skill, preference))
    remember(this.#mainFiles[preference], name, content, phase)
    return content
  }

  async #findFile (name: string, filePath: string): Promise<FileContent> {
    const { phase } = this.#options.stats
    const content = await this.#askForFile(name, filePath, (skill, path) => this.#readPinned(skill, path, MAX_TEXT_FILE_BYTES))
    remember(this.#files, fileKey(name, filePath), content, phase)
    return content
  }

  async #openFile (name: string, filePath: string): Promise<ServableFile> {
    const { phase } = this.#options.stats
    const file = await this.#askForFile(name, filePath, (skill, path) => this.#openPinned(skill, path),
      (file) => { if (file.kind === 'stream') return file.file.close() })
    if (file.kind === 'content') remember(this.#files, fileKey(name, filePath), file.content, phase)
    return file
  }

  async #readMainFile (skill: IndexedSkill, preference: MainFilePreference): Promise<FileContent> {
    const { name, mainFiles } = skill
    if (mainFiles.length === 0 && skill.refused !== undefined) throw documentSentence(skill.refused, name)
    for (const mainFile of orderMainFiles(mainFiles, preference)) {
      try {
        return await this.#readPinned(skill, mainFile, MAX_MAIN_FILE_BYTES)
      } catch (error) {
        if (!(error instanceof RefusedError) || !isNoMainFile(error.refusal)) throw documentSentence(error, name)
      }
    }
    throw documentError.notFound(name)
  }

  async #readPinned (skill: IndexedSkill, path: string, limit: number): Promise<FileContent> {
    const disk = this.#options.diskOf(skill)
    for (let turn = 1; ; turn++) {
      const content = await this.#contents.read(disk, skill, path, limit)
      const pinned = await this.#pin(skill, path, content)
      if (pinned !== undefined) return pinned
      if (turn === MAX_TURNS) return content.inRevision(undefined)
    }
  }

  async #openPinned (skill: IndexedSkill, path: string): Promise<ServableFile> {
    const disk = this.#options.diskOf(skill)
    for (let turn = 1; ; turn++) {
      const file = await this.#contents.open(disk, skill, path)
      if (file.kind === 'content') {
        const content = await this.#pin(skill, path, file.content)
        if (content !== undefined || turn === MAX_TURNS) return { kind: 'content', content: content ?? file.content.inRevision(undefined) }
      } else {
        const listed = await this.#listed(skill, path, file.digest)
        if (listed === undefined || listed.digest === file.digest || turn === MAX_TURNS) {
          return listed?.digest === file.digest ? { ...file, revision: listed.revision } : file
        }
        await file.file.close()
      }
    }
  }

  /** Content with the revision that it belongs to; undefined when the manifest lists another state of the file. */
  async #pin (skill: IndexedSkill, path: string, content: FileContent): Promise<FileContent | undefined> {
    if (content.revision !== undefined && content.revision === this.#manifests.lastRevision(skill)) return content
    const listed = await this.#listed(skill, path, content.digest)
    if (listed === undefined) return content.revision === undefined ? content : this.#contents.pin(skill, path, content, undefined)
    return listed.digest === content.digest ? this.#contents.pin(skill, path, content, listed.revision) : undefined
  }

  /**
   * A file as the manifest has it: the last one when it has this digest, else one of now. Undefined for a file that is in
   * no manifest, when there is none, and while it takes longer than an answer may wait.
   */
  async #listed (skill: IndexedSkill, path: string, digest: string): Promise<ListedFile | undefined> {
    const last = findFile(this.#manifests.last(skill), path)
    if (last?.digest === digest) return last
    if (this.#awaited.has(skill.name)) return undefined
    const disk = this.#options.diskOf(skill)
    try {
      if (await this.#manifests.isCheap(disk, skill)) return findFile((await this.#manifests.get(disk, skill)).manifest, path)
    } catch (error) {
      // That another file cannot be read is no reason to withhold this one.
      if (error instanceof RefusedError) return undefined
      throw error
    }
    this.#awaited.add(skill.name)
    return undefined
  }

  /** For the answers that come later. */
  async #makeManifest (name: string): Promise<void> {
    try {
      await this.manifest(name)
    } catch (err) {
      // A skill that cannot be listed, or went away: whoever asks for its manifest is told.
      if (!(err instanceof SkillError)) this.#options.log.warn({ err, skill: name }, 'the revision of a skill could not be worked out')
    }
  }

  /** An answer about a skill as a whole, with the sentences of a file called `.`. */
  async #askWhole<T> (name: string, answer: (disk: Disk, skill: IndexedSkill) => Promise<T>): Promise<T> {
    if (hasForbiddenSequence(name)) throw fileError.invalidName()
    const { ask, diskOf } = this.#options
    try {
      return await ask(name, (skill) => answer(diskOf(skill), skill))
    } catch (error) {
      if (error instanceof RefusedError && error.refusal === 'not_found') throw documentError.skillNotFound(name)
      throw fileSentence(error, name, '.')
    }
  }

  async #askForFile<T> (
    name: string, filePath: string, answer: (skill: IndexedSkill, path: string) => Promise<T>, discard?: (value: T) => unknown
  ): Promise<T> {
    if (hasForbiddenSequence(name)) throw fileError.invalidName()
    try {
      return await this.#options.ask(name, (skill) => answer(skill, pathInside(skill, filePath)), discard)
    } catch (error) {
      throw fileSentence(error, name, filePath)
    }
  }
}

function findFile (manifest: Manifest | undefined, path: string): ListedFile | undefined {
  const file = manifest?.files.find((each) => each.path === path)
  return manifest && file && { digest: file.digest, revision: manifest.revision }
}

/** Without a revision it is no answer for the others of the phase: one of them may be pinned, and have waited for it. */
function remember (memo: PhaseMemo<FileContent>, key: string, content: FileContent, phase: number): void {
  if (content.revision !== undefined) memo.set(key, content, phase)
}

/** A name that was found holds no slash, so that the two together are unambiguous. */
function fileKey (name: string, filePath: string): string {
  return `${name}/${filePath}`
}

/** Where a caller's path leads in a skill, by its text alone. */
function pathInside (skill: IndexedSkill, filePath: string): string {
  const parsed = parseRelativePath(filePath)
  switch (parsed.kind) {
    case 'empty': throw fileError.invalidPath()
    case 'outside': throw fileError.traversal()
    case 'unusable': throw fileError.notFound(skill.name, filePath)
    case 'inside': return withMainFileFallback(skill, parsed.path)
  }
}

/** At the top of a skill, the two usual spellings mean the main file that is there. */
function withMainFileFallback ({ mainFiles }: IndexedSkill, path: string): string {
  if ((path !== 'SKILL.md' && path !== 'SKILL.MD') || mainFiles.includes(path)) return path
  return orderMainFiles(mainFiles, path)[0] ?? path
}
