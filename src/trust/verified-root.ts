import { EventEmitter } from 'node:events'
import { basename } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { FindingCode } from '../core/format/findings.ts'
import type { Listing } from '../core/roots/list-root.ts'
import type { RootOptions } from '../core/roots/root.ts'
import { describeSkipped } from '../core/roots/skipped.ts'
import { SkillError } from '../core/shared/errors.ts'
import type { CoreLog } from '../core/shared/log.ts'
import type { Finding } from '../core/shared/skill.ts'
import { createSkillManager, type SkillManager } from '../core/skill-manager.ts'
import type { TrustReport } from '../schemas/trust.ts'
import { type PublishedSkill, publishedSkill } from '../sources/publish/plan.ts'
import { Publisher } from '../sources/publish/publisher.ts'
import type { StateFolder } from '../sources/publish/state-folder.ts'
import { type Origin, type SourceRoot, SourceSync } from '../sources/source-sync.ts'
import type { RootPolicy, Verdict } from './policy.ts'
import { unchecked } from './verify.ts'

/**
 * Pause between two checks of everything, in milliseconds: no event reports that a certificate expires or a copy is
 * gone.
 */
const TICK_MS = 20_000

/** Findings about files that no copy has. */
const LEFT_OUT: ReadonlySet<string> = new Set<FindingCode>([
  'link_outside', 'link_to_folder', 'file_special', 'file_unreadable', 'file_path_too_long', 'file_name_not_utf8'
])

/** A skill is refused, for another reason than before, or served again. */
export interface TrustChange {
  readonly skill: string
  /** Name of its root. */
  readonly root: string
  readonly isServed: boolean
  readonly report: TrustReport
  readonly reason: Finding | undefined
}

export interface VerifiedRootOptions {
  readonly policy: RootPolicy
  readonly state: StateFolder
  readonly log: CoreLog
  readonly polling?: boolean | undefined
  readonly linkTargets?: readonly string[] | undefined
}

interface Known {
  readonly verdict: Verdict
  /** Undefined for a skill that is not served. */
  readonly skill?: PublishedSkill
}

/**
 * A root whose skills are served from copies in the state folder, while a policy may refuse some of them. Each copy is
 * made of the bytes that were checked, and never changes. Otherwise the root serves its own folders.
 */
export class VerifiedRoot extends EventEmitter<{ changed: [], verdict: [TrustChange] }> implements Listing, Origin {
  readonly report = { kind: 'folder' } as const
  readonly intervalMs = TICK_MS
  readonly maxRetryMs = TICK_MS
  readonly spacingMs = 0
  /** What the catalog gets instead of the root. */
  readonly root: SourceRoot
  readonly sync: SourceSync
  readonly #original: RootOptions
  readonly #options: VerifiedRootOptions
  readonly #publisher: Publisher
  readonly #known = new Map<string, Known>()
  /** Names of the skills that may have changed. */
  readonly #pending = new Set<string>()
  /** When all skills are checked again, by the monotonic clock. */
  #allDueAt = 0
  #folders: Listing['folders']
  #originals: SkillManager | undefined
  skipped = 0

  constructor (original: RootOptions, options: VerifiedRootOptions) {
    super()
    this.#original = original
    this.#options = options
    const { state, log } = options
    const { path, name = basename(path), listed } = original
    this.root = { ...original, name, listed: this }
    this.#publisher = new Publisher(state.folderOf('verified', name, [path, name]))
    listed?.on('changed', () => { if (!this.#isGuarded) this.emit('changed') })
    this.sync = new SourceSync(this, log)
  }

  /** Whether the root lists its own folder, as without this listing. */
  get isDirect (): boolean {
    return !this.#isGuarded && this.#original.listed === undefined
  }

  get isFixed (): boolean {
    return this.#isGuarded || this.#original.listed?.isFixed === true
  }

  get folders (): Listing['folders'] {
    return this.#isGuarded ? this.#folders : this.#original.listed?.folders
  }

  get ignored (): Listing['ignored'] {
    return this.#isGuarded ? undefined : this.#original.listed?.ignored
  }

  hint (): void {
    this.#original.listed?.hint?.()
  }

  allows (name: string, revision: string): boolean {
    return !this.#isGuarded || this.#options.policy.allows(this.root.name, name, revision)
  }

  /** How many skills are refused; undefined while none can be. */
  get refused (): number | undefined {
    return this.#isGuarded ? this.#known.size - this.#good.length : undefined
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
  async open (): Promise<void> {
    if (this.#isGuarded) await this.#begin()
    await this.sync.checkNow()
  }

  /** The policy may say something else from now on. */
  async policyChanged (): Promise<void> {
    this.#allDueAt = 0
    this.emit('changed')
    await this.sync.checkNow()
  }

  /** Checks the skills that may have changed, or all of them, and publishes the good ones. */
  async check (signal: AbortSignal): Promise<void> {
    if (!this.#isGuarded) return await this.close()
    try {
      const skills = await this.#begin()
      // What changes before the first index is made is not reported.
      await skills.indexed()
      if (!await this.#publisher.restore()) this.#allDueAt = 0
      const areAllDue = performance.now() >= this.#allDueAt
      if (areAllDue) this.#allDueAt = performance.now() + TICK_MS / 2
      const present = new Set(skills.indexedNames())
      const names = areAllDue ? present : [...this.#pending].filter((name) => present.has(name))
      this.#pending.clear()
      for (const name of [...this.#known.keys()].filter((name) => !present.has(name))) this.#note(name, undefined)
      for (const name of names) this.#note(name, await this.#examine(skills, name, signal))
      const good = this.#good
      const isSame = this.#publisher.folders?.size === good.length && this.#publisher.changedAmong(good).size === 0
      if (!isSame) await this.#publisher.list(good)
    } finally {
      // Whatever could not be published: what is not good any more is not served.
      this.#list()
    }
  }

  /** Ends the work on copies. */
  async close (): Promise<void> {
    await this.#originals?.close()
    this.#originals = undefined
    this.#known.clear()
    this.#folders = undefined
  }

  get #isGuarded (): boolean {
    return this.#options.policy.guards(this.root.name)
  }

  /** The skills that are served. */
  get #good (): readonly PublishedSkill[] {
    return [...this.#known.values()].flatMap(({ skill }) => skill ?? [])
  }

  async #begin (): Promise<SkillManager> {
    if (this.#originals !== undefined) return this.#originals
    const { state, log, polling = false, linkTargets } = this.#options
    await state.lock()
    await this.#publisher.open()
    const skills = this.#originals = createSkillManager({
      projectRoots: [this.#original],
      polling,
      linkTargets,
      keep: { keepMs: 0 },
      onSkipped: (entries) => {
        this.skipped = entries.length
        for (const sentence of entries.flatMap(describeSkipped)) log.warn({ root: this.root.path }, sentence)
      }
    })
    skills.subscribe((names) => {
      for (const name of names) this.#pending.add(name)
      this.sync.checkSoon()
    })
    await skills.start()
    return skills
  }

  async #examine (skills: SkillManager, name: string, signal: AbortSignal): Promise<Known | undefined> {
    const { policy } = this.#options
    try {
      return await skills.read(name, async (state) => {
        const verdict = await policy.check(state, policy.requires(this.root.name))
        if (!verdict.isServed) return { verdict }
        const ofCopy = (await state.snapshot()).findings.filter(({ code }) => LEFT_OUT.has(code))
        const skill = publishedSkill(name, verdict.files.map(({ path, digest, size_bytes: size }) =>
          ({ path, entry: { path, kind: 'file', id: digest, size } })))
        await this.#publisher.add([skill], async (files, use) => {
          // A state gives no bytes but those that were checked.
          for (const file of files) await use(file, (await state.file(file.entry.path, Infinity)).bytes)
        }, signal)
        return { verdict: { ...verdict, findings: [...verdict.findings, ...ofCopy] }, skill }
      })
    } catch (error) {
      signal.throwIfAborted()
      const { code } = error instanceof SkillError ? error : {}
      if (code === 'skill_not_found') return undefined
      if (code === 'skill_changing') {
        this.#pending.add(name)
        this.sync.checkSoon()
      }
      return { verdict: unchecked(error) }
    }
  }

  /** Keeps what is known of a skill, and reports a skill that is refused from now on, or served again. */
  #note (skill: string, known: Known | undefined): void {
    const before = reasonIn(this.#known.get(skill))
    if (known === undefined) this.#known.delete(skill)
    else this.#known.set(skill, known)
    const reason = reasonIn(known)
    if (known === undefined || reason?.message === before?.message) return
    const { isServed, report } = known.verdict
    const { log } = this.#options
    const root = this.root.name
    const fields = { skill, root, ...report.signer !== null && { signer: report.signer } }
    const problem = { ...fields, code: reason?.code, problem: reason?.message }
    if (isServed) log.info(fields, 'a skill is served: it has passed its check')
    else log.warn(problem, 'a skill is quarantined: it is not served')
    this.emit('verdict', { skill, root, isServed, report, reason })
  }

  #list (): void {
    const { listed } = this.#original
    const isWaiting = listed?.isFixed === true && listed.folders === undefined
    const good = this.#good
    const unlisted = this.#publisher.changedAmong(good)
    const folders = new Map(good.flatMap(({ name }) => {
      const folder = this.#publisher.folders?.get(name)
      return folder === undefined || unlisted.has(name) ? [] : [[name, folder]]
    }))
    if (!isWaiting && isDeepStrictEqual(folders, this.#folders)) return
    this.#folders = isWaiting ? undefined : folders
    this.emit('changed')
  }
}

/** Why a skill is refused. */
function reasonIn (known: Known | undefined): Finding | undefined {
  return known?.verdict.isServed === false ? known.verdict.findings[0] : undefined
}
