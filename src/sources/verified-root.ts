import { createHash } from 'node:crypto'
import { constants, createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { SkillState } from '../core/revisions/state.ts'
import { type ChangeFeed, createChangeFeed } from '../core/events/change-feed.ts'
import type { FindingCode } from '../core/format/findings.ts'
import type { ListedFolder, Listing } from '../core/roots/list-root.ts'
import type { RootOptions } from '../core/roots/root.ts'
import { describeSkipped } from '../core/roots/skipped.ts'
import { coalesce } from '../core/shared/async.ts'
import { SkillError } from '../core/shared/errors.ts'
import { type CoreLog, SILENT } from '../core/shared/log.ts'
import { Signal } from './signal.ts'
import type { Finding, ManifestFile } from '../core/shared/skill.ts'
import { createSkillManager, type SkillManager } from '../core/skill-manager.ts'
import { asSourceError } from './as-source-error.ts'
import { type PublishedSkill, Publisher } from './publish/publisher.ts'
import type { SourceEntry } from './publish/source-tree.ts'
import type { StateFolder } from './publish/state-folder.ts'

/** Pause before a skill is read again that changed while it was copied, in milliseconds. */
const RETRY_MS = 200

/**
 * Pause between two checks of everything, in milliseconds: no event reports that a certificate expires or a copy is
 * gone.
 */
const TICK_MS = 20_000

const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK

/** Findings about files that no copy has. */
const LEFT_OUT: ReadonlySet<string> = new Set<FindingCode>([
  'link_outside', 'link_to_folder', 'file_special', 'file_unreadable', 'file_path_too_long', 'file_name_not_utf8'
])

/** What a policy says of one state of a skill. */
export interface CheckedSkill {
  readonly isServed: boolean
  readonly findings: readonly Finding[]
  /** The files that are served, and the revision that they have. */
  readonly files: readonly ManifestFile[]
  readonly revision: string
}

/** Decides which states of the skills of a root are served. */
export interface Guard<Verdict extends CheckedSkill> {
  /** Whether it may refuse some of them now. */
  guards (): boolean
  check (state: SkillState): Promise<Verdict>
  /** The verdict on a skill that could not be checked. */
  refusal (reason: string): Verdict
  /** Whether a revision that was handed out before may still be read. */
  allows (name: string, revision: string): boolean
  /** Called with the verdict on each skill that was checked, undefined for one that is gone. */
  onVerdict (name: string, verdict: Verdict | undefined): void
}

interface VerifiedRootOptions<Verdict extends CheckedSkill> {
  readonly root: RootOptions & { readonly name: string }
  readonly guard: Guard<Verdict>
  readonly state: StateFolder
  readonly log: CoreLog
  readonly polling?: boolean | undefined
  readonly linkTargets?: readonly string[] | undefined
}

interface Known<Verdict> {
  readonly verdict: Verdict
  /** Undefined for a skill that is not served. */
  readonly skill: PublishedSkill | undefined
}

/**
 * A root whose skills are served from copies in the state folder, while its guard may refuse some of them. Each copy is
 * made of the bytes that were checked, and never changed. Without a guard the root serves its own folders.
 */
export class VerifiedRoot<Verdict extends CheckedSkill> implements Listing {
  readonly changed = new Signal<void>()
  readonly #options: VerifiedRootOptions<Verdict>
  readonly #publisher: Publisher
  readonly #closing = new AbortController()
  readonly #known = new Map<string, Known<Verdict>>()
  /** Names of the skills that may have changed. */
  readonly #pending = new Set<string>()
  readonly #sync = coalesce(() => this.#syncNow())
  readonly #stopFollowing: (() => void) | undefined
  #isEverythingPending = true
  #folders: ReadonlyMap<string, ListedFolder> | undefined
  /** What the folders are copies of, by name. */
  #copies: ReadonlyMap<string, PublishedSkill> = new Map()
  #originals: { readonly skills: SkillManager, readonly feed: ChangeFeed } | undefined
  #release: (() => Promise<void>) | undefined
  #retry: NodeJS.Timeout | undefined
  #tick: NodeJS.Timeout | undefined
  #problem = ''
  #isGuarded: boolean
  skipped = 0

  constructor (options: VerifiedRootOptions<Verdict>) {
    this.#options = options
    const { root: { name, path, listed }, guard, state } = options
    this.#publisher = new Publisher(state.folderOf('verified', name, [path, name]))
    this.#isGuarded = guard.guards()
    this.#stopFollowing = listed?.changed.subscribe(() => { if (!this.#isGuarded) this.changed.emit() })
  }

  /** What the catalog gets instead of the root. */
  get root (): RootOptions & { readonly name: string } {
    return { ...this.#options.root, listed: this }
  }

  /** Whether the root lists its own folder, as without this listing. */
  get isDirect (): boolean {
    return !this.#isGuarded && this.#options.root.listed === undefined
  }

  get isFixed (): boolean {
    return this.#isGuarded || this.#options.root.listed?.isFixed === true
  }

  get folders (): Listing['folders'] {
    return this.#isGuarded ? this.#folders : this.#options.root.listed?.folders
  }

  get ignored (): ReadonlySet<string> | undefined {
    return this.#isGuarded ? undefined : this.#options.root.listed?.ignored
  }

  allows (name: string, revision: string): boolean {
    return !this.#isGuarded || this.#options.guard.allows(name, revision)
  }

  /** How many skills are refused; undefined while none can be. */
  get refused (): number | undefined {
    if (!this.#isGuarded) return undefined
    return [...this.#known.values()].filter(({ skill }) => skill === undefined).length
  }

  /** The verdict on what is served of a skill; undefined for another revision. */
  verdictOn (name: string, revision: string): Verdict | undefined {
    const verdict = this.#known.get(name)?.verdict
    return verdict?.isServed === true && verdict.revision === revision ? verdict : undefined
  }

  /**
   * Checks all skills, and returns when those that are good are there.
   * @throws AddressError or ConfigError that names the setting, where the state folder cannot be used
   */
  async start (): Promise<void> {
    if (!this.#isGuarded) return
    await this.#begin()
    await this.#sync()
  }

  /** The guard may say something else from now on. */
  async guardChanged (): Promise<void> {
    const isGuarded = this.#options.guard.guards()
    this.#isEverythingPending = true
    if (isGuarded !== this.#isGuarded) {
      this.#isGuarded = isGuarded
      this.#folders = undefined
      this.changed.emit()
      if (!isGuarded) return await this.#end()
    }
    if (!isGuarded || this.#closing.signal.aborted) return
    try {
      await this.#begin()
    } catch (error) {
      this.#fail(error)
      return
    }
    await this.#sync()
  }

  async close (): Promise<void> {
    this.#closing.abort()
    this.#stopFollowing?.()
    await this.#sync()
    await this.#end()
    await this.#publisher.close()
  }

  async #begin (): Promise<void> {
    if (this.#originals !== undefined) return
    const { root, state, log, polling, linkTargets } = this.#options
    this.#release ??= await state.acquire()
    await this.#publisher.open('')
    const skills = createSkillManager({
      projectRoots: [root],
      polling: polling ?? false,
      linkTargets,
      keep: { keepMs: 0 },
      log: SILENT,
      onSkipped: (entries) => {
        this.skipped = entries.length
        const sentences = entries.flatMap((entry) => describeSkipped(entry))
        for (const sentence of sentences) log.warn({ root: root.path }, sentence)
      }
    })
    const feed = createChangeFeed({ skills })
    this.#originals = { skills, feed }
    this.#tick = setInterval(() => {
      this.#isEverythingPending = true
      void this.#sync()
    }, TICK_MS).unref()
    await skills.start()
    feed.subscribe((event) => {
      if (event.type === 'position') return
      if ('name' in event) this.#pending.add(event.name)
      else this.#isEverythingPending = true
      void this.#sync()
    })
    skills.subscribe((names) => {
      for (const name of names) this.#pending.add(name)
      void this.#sync()
    })
  }

  async #end (): Promise<void> {
    const originals = this.#originals
    this.#originals = undefined
    clearTimeout(this.#retry)
    clearInterval(this.#tick)
    originals?.feed.close()
    await originals?.skills.close()
    this.#known.clear()
    await this.#release?.()
    this.#release = undefined
  }

  async #syncNow (): Promise<void> {
    const skills = this.#originals?.skills
    if (skills === undefined || this.#closing.signal.aborted) return
    try {
      await this.#check(skills)
      if (!await this.#publisher.restore() || !this.#isPublished()) await this.#publish()
      this.#list()
      this.#problem = ''
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#fail(error)
    }
  }

  /** Reads and judges the skills that may have changed. */
  async #check (skills: SkillManager): Promise<void> {
    const present = new Set(await skills.list().catch(noneWithoutRoot))
    const names = this.#isEverythingPending ? [...present] : [...this.#pending].filter((name) => present.has(name))
    this.#isEverythingPending = false
    this.#pending.clear()
    for (const name of [...this.#known.keys()].filter((name) => !present.has(name))) this.#note(name, undefined)
    for (const name of names) this.#note(name, await this.#examine(skills, name))
  }

  async #examine (skills: SkillManager, name: string): Promise<Known<Verdict> | undefined> {
    const { guard } = this.#options
    try {
      return await skills.read(name, async (state) => {
        const verdict = await guard.check(state)
        if (!verdict.isServed) return { verdict, skill: undefined }
        const ofCopy = (await state.snapshot()).findings.filter(({ code }) => LEFT_OUT.has(code))
        const { skillPath } = state.skill.metadata
        const files = verdict.files.map(({ path, digest, size_bytes: size }) =>
          ({ path, entry: { path: join(skillPath, path), kind: 'file' as const, id: digest, size } }))
        return { verdict: { ...verdict, findings: [...verdict.findings, ...ofCopy] }, skill: { name, files } }
      })
    } catch (error) {
      if (!(error instanceof SkillError)) throw error
      if (error.code === 'skill_not_found') return undefined
      if (error.code === 'skill_changing') this.#tryAgain(name)
      return { verdict: guard.refusal(error.message), skill: undefined }
    }
  }

  #note (name: string, known: Known<Verdict> | undefined): void {
    const before = this.#known.get(name)
    if (known === undefined) this.#known.delete(name)
    // The same content stays the same object, whose copy is there.
    else {
      const isSame = known.skill !== undefined && before?.skill !== undefined && isSameSkill(known.skill, before.skill)
      this.#known.set(name, isSame ? { ...known, skill: before.skill } : known)
    }
    this.#options.guard.onVerdict(name, known?.verdict)
  }

  /** Whether the copies are those of the skills that are good now. */
  #isPublished (): boolean {
    const good = [...this.#known.values()].flatMap(({ skill }) => skill ?? [])
    return good.length === this.#copies.size && good.every((skill) => this.#copies.get(skill.name) === skill)
  }

  async #publish (): Promise<void> {
    const state = { revision: '', settings: '', memory: {}, changedAt: '', report: undefined }
    const owners = new WeakMap<SourceEntry, string>()
    for (;;) {
      const skills = [...this.#known.values()].flatMap(({ skill }) => skill ?? [])
      for (const { name, files } of skills) for (const { entry } of files) owners.set(entry, name)
      try {
        await this.#publisher.publish(skills, copyFiles, { state, signal: this.#closing.signal })
        this.#copies = new Map(skills.map((skill) => [skill.name, skill]))
        return
      } catch (error) {
        const name = error instanceof ChangedError ? owners.get(error.entry) : undefined
        if (name === undefined) throw error
        const verdict = this.#options.guard.refusal('its files changed while they were copied')
        this.#note(name, { verdict, skill: undefined })
        this.#tryAgain(name)
      }
    }
  }

  #tryAgain (name: string): void {
    this.#pending.add(name)
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => { void this.#sync() }, RETRY_MS).unref()
  }

  /** Whatever could not be published: what is not good any more is not served. */
  #fail (cause: unknown): void {
    this.#isEverythingPending = true
    const { root, log } = this.#options
    const { code, message } = asSourceError(cause)
    if (this.#problem !== message) {
      log.warn({ root: root.path, code, err: cause }, `verified copies of skills cannot be made: ${message}`)
    }
    this.#problem = message
    this.#list()
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => { void this.#sync() }, RETRY_MS * 10).unref()
  }

  #list (): void {
    const { listed } = this.#options.root
    const isWaiting = listed?.isFixed === true && listed.folders === undefined
    const good = [...this.#publisher.folders ?? []].filter(([name]) => {
      const skill = this.#known.get(name)?.skill
      return skill !== undefined && skill === this.#copies.get(name)
    })
    const before = this.#folders
    const isSame = before?.size === good.length && good.every(([name, folder]) => before.get(name) === folder)
    if (isSame && !isWaiting) return
    this.#folders = isWaiting ? undefined : new Map(good)
    this.changed.emit()
  }
}

/** A file has other bytes than those that were checked. */
class ChangedError extends Error {
  readonly entry: SourceEntry

  constructor (entry: SourceEntry, options?: ErrorOptions) {
    super('a file changed after it was checked', options)
    this.entry = entry
  }
}

/** @throws ChangedError for a file that has not the digest that it had */
async function copyFiles (
  files: Iterable<{ readonly entry: SourceEntry, readonly path: string }>, signal: AbortSignal
): Promise<void> {
  for (const { entry, path } of files) {
    const hash = createHash('sha256')
    let from
    try {
      from = await open(entry.path, READ_ONLY)
    } catch (error) {
      throw new ChangedError(entry, { cause: error })
    }
    try {
      const stats = await from.stat()
      if (!stats.isFile() || stats.size !== entry.size) throw new ChangedError(entry)
      const bytes = from.createReadStream({ autoClose: false, end: Math.max(0, entry.size - 1) })
      const to = createWriteStream(path, { flags: 'wx', mode: 0o644 })
      await pipeline(bytes, async function * (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          hash.update(chunk)
          yield chunk
        }
      }, to, { signal })
    } finally {
      await from.close()
    }
    if (`sha256:${hash.digest('hex')}` !== entry.id) throw new ChangedError(entry)
  }
}

function isSameSkill (a: PublishedSkill, b: PublishedSkill): boolean {
  return a.files.length === b.files.length && a.files.every(({ path, entry }, index) => {
    const other = b.files[index]
    return other?.path === path && other.entry.id === entry.id && other.entry.path === entry.path
  })
}

function noneWithoutRoot (error: unknown): readonly string[] {
  if (error instanceof SkillError) return []
  throw error
}
