import { basename } from 'node:path'
import type { FindingCode } from '../core/format/findings.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { RootOptions } from '../core/roots/root.ts'
import { logCatalog } from '../operator/catalog-log.ts'
import { describeSkipped } from '../operator/skipped.ts'
import { SkillError } from '../core/shared/errors.ts'
import { type CoreLog, SILENT } from '../core/shared/log.ts'
import { createSkillManager, type SkillManager } from '../core/skill-manager.ts'
import { publishedSkill } from '../sources/publish/plan.ts'
import { Publisher } from '../sources/publish/publisher.ts'
import type { StateFolder } from '../sources/publish/state-folder.ts'
import { type Origin, type SourceRoot, SourceSync } from '../sources/source-sync.ts'
import { type Copy, GuardedListing, type GuardedSkill } from './guarded-listing.ts'
import type { TrustPolicy } from './trust-policy.ts'
import { judge } from './verdict.ts'

/** Pause between two checks, in milliseconds. No event reports an expired certificate or a removed copy. */
const TICK_MS = 20_000

/** Findings about files that copies do not have. */
const LEFT_OUT: ReadonlySet<string> = new Set<FindingCode>([
  'link_outside', 'link_to_folder', 'file_special', 'file_unreadable', 'file_path_too_long', 'file_name_not_utf8'
])

export interface GuardedOriginOptions {
  readonly policy: TrustPolicy
  readonly state: StateFolder
  readonly log: CoreLog
  readonly polling?: boolean | undefined
  readonly linkTargets?: readonly string[] | undefined
}

/**
 * Follows the skills of a root, and copies those that the policy accepts into the state folder. A copy has the bytes
 * that were checked, and never changes.
 */
export class GuardedOrigin implements Origin {
  readonly report = { kind: 'folder' } as const
  readonly intervalMs = TICK_MS
  readonly maxRetryMs = TICK_MS
  readonly spacingMs = 0
  /** The root for the catalog, instead of the original one. */
  readonly root: SourceRoot
  readonly listing: GuardedListing
  readonly sync: SourceSync
  readonly #original: RootOptions
  readonly #options: GuardedOriginOptions
  readonly #publisher: Publisher
  readonly #folder: string
  /** Releases the claim on the folder for the copies. */
  #release = (): void => {}
  /** Whether another process has taken the folder over, while this one was suspended. */
  #isLost = false
  #skills: SkillManager | undefined
  /** Names of the skills that may have changed since their check. */
  #due: Set<string> | 'all' = 'all'

  constructor (original: RootOptions, options: GuardedOriginOptions) {
    const { policy, state, log } = options
    const { path, name = basename(path), listed } = original
    this.#original = original
    this.#options = options
    this.#folder = state.folderOf('verified', name, [path, name])
    this.#publisher = new Publisher(this.#folder)
    this.listing = new GuardedListing({ name, policy, copies: this.#publisher, original: listed })
    this.root = { ...original, name, listed: this.listing }
    this.sync = new SourceSync(this, log)
  }

  /** Follows a change of the policy: the verdicts change at once, the copies after the check. */
  async policyChanged (): Promise<void> {
    this.#due = 'all'
    this.listing.emit('changed')
    await this.sync.checkNow()
  }

  /** Checks the skills that may have changed, and publishes copies of those that are accepted. */
  async check (signal: AbortSignal): Promise<void> {
    if (this.#isLost || !this.listing.isGuarded) await this.close()
    if (!this.listing.isGuarded) return
    // SourceSync runs one check at a time.
    const skills = this.#skills ??= await this.#follow()
    // The catalog reports changes from the first index on.
    await skills.indexed()
    if (!await this.#publisher.restore()) this.#due = 'all'
    const due = this.#due
    this.#due = new Set()
    const present = skills.indexedNames()
    const known = new Map<string, GuardedSkill>()
    try {
      for (const name of present) {
        const before = this.listing.skills?.get(name)
        const isDue = due === 'all' || due.has(name) || this.listing.isIncomplete(name)
        const skill = isDue ? await this.#examine(skills, name, signal) : before
        if (skill !== undefined) known.set(name, skill)
      }
      const copies = [...known.values()].flatMap((skill) => 'copy' in skill && skill.copy ? skill.copy.published : [])
      const isSame = this.#publisher.folders?.size === copies.length && this.#publisher.changedAmong(copies).size === 0
      if (!isSame) await this.#publisher.list(copies)
    } finally {
      // Also after an error: a skill that was refused must not be served while the copies cannot be published.
      this.listing.take(known)
    }
  }

  /** Stops following the original root, and gives up the folder for the copies. */
  async close (): Promise<void> {
    await this.#skills?.close()
    this.#skills = undefined
    this.#release()
    this.#isLost = false
    this.listing.take(undefined)
  }

  /** Opens the folder for the copies, and follows the skills of the original root. */
  async #follow (): Promise<SkillManager> {
    const { state, log, polling = false, linkTargets } = this.#options
    // The folder is still claimed if the last attempt failed.
    this.#release()
    const { folder, release } = await state.claim(this.#folder, () => {
      this.#isLost = true
      log.warn({ root: this.root.path }, 'another process took over the verified copies of a root')
      this.sync.checkSoon()
    })
    this.#release = release
    await this.#publisher.open(folder)
    await this.#publisher.clean()
    const skills = createSkillManager({
      projectRoots: [this.#original],
      polling,
      linkTargets,
      keep: { keepMs: 0 }
    })
    logCatalog(skills.parts.catalog, SILENT, (entries) => {
      this.listing.skipped = entries.length
      for (const sentence of entries.flatMap(describeSkipped)) log.warn({ root: this.root.path }, sentence)
    })
    this.#due = 'all'
    skills.parts.catalog.on('changed', (changes) => { this.#checkSoon(changes.map(({ name }) => name)) })
    await skills.start()
    return skills
  }

  #checkSoon (names: readonly string[]): void {
    if (this.#due !== 'all') for (const name of names) this.#due.add(name)
    this.sync.checkSoon()
  }

  /** Checks a skill, and copies it if it is accepted. Returns undefined if it no longer exists. */
  async #examine (skills: SkillManager, name: string, signal: AbortSignal): Promise<GuardedSkill | undefined> {
    const { policy } = this.#options
    try {
      return await skills.read(name, async (state) => {
        const checked = await policy.check(state)
        const { isServed, revision } = judge(name, checked, this.listing.rules)
        if (!isServed) return { checked }
        const exempt = revision === checked.revision ? [] : checked.signature?.exempt ?? []
        return { checked, copy: await this.#copy(state, { revision, exempt, signal }) }
      })
    } catch (error) {
      signal.throwIfAborted()
      const { code } = error instanceof SkillError ? error : {}
      if (code === 'skill_not_found') return undefined
      if (code === 'skill_changing') this.#checkSoon([name])
      return { error }
    }
  }

  async #copy (state: SkillState, { revision, exempt, signal }: {
    readonly revision: string, readonly exempt: readonly string[], readonly signal: AbortSignal
  }): Promise<Copy> {
    const { manifest: { skill_name: name, files }, findings } = await state.snapshot()
    const served = files.filter(({ path }) => !exempt.includes(path))
    const published = publishedSkill(name, served.map(({ path, digest, size_bytes: size }) =>
      ({ path, entry: { path, kind: 'file', id: digest, size } })))
    await this.#publisher.add([published], async (files, use) => {
      // A state returns the bytes that were checked, or fails.
      for (const file of files) await use(file, (await state.file(file.entry.path, Infinity)).bytes)
    }, signal)
    return { published, revision, findings: findings.filter(({ code }) => LEFT_OUT.has(code)) }
  }
}
