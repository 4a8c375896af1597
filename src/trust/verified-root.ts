import { EventEmitter } from 'node:events'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { isDeepStrictEqual } from 'node:util'
import { finding, type FindingCode } from '../core/format/findings.ts'
import type { Listing } from '../core/roots/list-root.ts'
import type { RootOptions } from '../core/roots/root.ts'
import { describeSkipped } from '../core/roots/skipped.ts'
import { sha256 } from '../core/shared/digest.ts'
import { SkillError, skillError } from '../core/shared/errors.ts'
import type { CoreLog } from '../core/shared/log.ts'
import { createSkillManager, type SkillManager } from '../core/skill-manager.ts'
import { Keeper, type Origin, type SourceRoot } from '../sources/keeper.ts'
import { type PublishedSkill, publishedSkill } from '../sources/publish/plan.ts'
import { Publisher } from '../sources/publish/publisher.ts'
import type { SourceEntry } from '../sources/publish/source-tree.ts'
import type { StateFolder } from '../sources/publish/state-folder.ts'
import type { Policy, Verdict } from './policy.ts'

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

export interface VerifiedRootOptions {
  readonly root: RootOptions & { readonly name: string }
  readonly policy: Pick<Policy, 'guards' | 'check' | 'allows'>
  /** Called with the verdict on each skill that was checked, undefined for one that is gone, and the one before. */
  readonly onVerdict: (name: string, verdict: Verdict | undefined, before: Verdict | undefined) => void
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
export class VerifiedRoot extends EventEmitter<{ changed: [] }> implements Listing, Origin {
  readonly report = { kind: 'folder' } as const
  readonly intervalMs = TICK_MS
  readonly maxRetryMs = TICK_MS
  readonly spacingMs = 0
  /** What the catalog gets instead of the root. */
  readonly root: SourceRoot
  readonly keeper: Keeper
  readonly #options: VerifiedRootOptions
  readonly #publisher: Publisher
  readonly #known = new Map<string, Known>()
  /** Names of the skills that may have changed. */
  readonly #pending = new Set<string>()
  /** When all skills are checked again, by the monotonic clock. */
  #allDueAt = 0
  #folders: Listing['folders']
  #originals: SkillManager | undefined
  #release: (() => Promise<void>) | undefined
  #isGuarded: boolean
  skipped = 0

  constructor (options: VerifiedRootOptions) {
    super()
    this.#options = options
    const { root, policy, state, log } = options
    this.root = { ...root, listed: this }
    this.#publisher = new Publisher(state.folderOf('verified', root.name, [root.path, root.name]))
    this.#isGuarded = policy.guards(root.name)
    root.listed?.on('changed', () => { if (!this.#isGuarded) this.emit('changed') })
    this.keeper = new Keeper(this, log)
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

  get ignored (): Listing['ignored'] {
    return this.#isGuarded ? undefined : this.#options.root.listed?.ignored
  }

  hint (): void {
    this.#options.root.listed?.hint?.()
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
    await this.keeper.sync()
  }

  /** The policy may say something else from now on. */
  async policyChanged (): Promise<void> {
    const wasGuarded = this.#isGuarded
    this.#isGuarded = this.#options.policy.guards(this.root.name)
    this.#allDueAt = 0
    if (this.#isGuarded !== wasGuarded) {
      this.#folders = undefined
      this.emit('changed')
    }
    await this.keeper.sync()
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
      const present = new Set(skills.namesNow())
      const names = areAllDue ? present : [...this.#pending].filter((name) => present.has(name))
      this.#pending.clear()
      for (const name of [...this.#known.keys()].filter((name) => !present.has(name))) this.#note(name, undefined)
      for (const name of names) this.#note(name, await this.#examine(skills, name, signal))
      const good = this.#good
      const isSame = this.#publisher.folders?.size === good.length && this.#publisher.changedAmong(good).size === 0
      if (!isSame) await this.#publisher.list(good)
    } catch (error) {
      this.#allDueAt = 0
      throw error
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
    await this.#release?.()
    this.#release = undefined
  }

  /** The skills that are served. */
  get #good (): readonly PublishedSkill[] {
    return [...this.#known.values()].flatMap(({ skill }) => skill ?? [])
  }

  async #begin (): Promise<SkillManager> {
    if (this.#originals !== undefined) return this.#originals
    const { root, state, log, polling = false, linkTargets } = this.#options
    this.#release ??= await state.acquire()
    await this.#publisher.open()
    const skills = this.#originals = createSkillManager({
      projectRoots: [root],
      polling,
      linkTargets,
      keep: { keepMs: 0 },
      onSkipped: (entries) => {
        this.skipped = entries.length
        const sentences = entries.flatMap((entry) => describeSkipped(entry))
        for (const sentence of sentences) log.warn({ root: root.path }, sentence)
      }
    })
    skills.subscribe((names) => {
      for (const name of names) this.#pending.add(name)
      this.keeper.hint()
    })
    await skills.start()
    return skills
  }

  async #examine (skills: SkillManager, name: string, signal: AbortSignal): Promise<Known | undefined> {
    try {
      return await skills.read(name, async (state) => {
        const verdict = await this.#options.policy.check(this.root.name, state)
        if (!verdict.isServed) return { verdict }
        const ofCopy = (await state.snapshot()).findings.filter(({ code }) => LEFT_OUT.has(code))
        const { skillPath } = state.skill.metadata
        const skill = publishedSkill(name, verdict.files.map(({ path, digest, size_bytes: size }) =>
          ({ path, entry: { path: join(skillPath, path), kind: 'file', id: digest, size } })))
        await this.#publisher.add([skill], async (files, use) => {
          for (const file of files) {
            const bytes = await readChecked(file.entry)
            if (bytes === undefined) throw skillError.changing(name)
            await use(file, bytes)
          }
        }, signal)
        return { verdict: { ...verdict, findings: [...verdict.findings, ...ofCopy] }, skill }
      })
    } catch (error) {
      if (!(error instanceof SkillError)) throw error
      if (error.code === 'skill_not_found') return undefined
      if (error.code === 'skill_changing') {
        this.#pending.add(name)
        this.keeper.hint()
      }
      return { verdict: unchecked(error.message) }
    }
  }

  #note (name: string, known: Known | undefined): void {
    const before = this.#known.get(name)
    if (known === undefined) this.#known.delete(name)
    else this.#known.set(name, known)
    this.#options.onVerdict(name, known?.verdict, before?.verdict)
  }

  #list (): void {
    const { listed } = this.#options.root
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

/** The bytes of a file; undefined when they are not those that were checked. */
async function readChecked ({ path, id, size }: SourceEntry): Promise<Buffer | undefined> {
  const file = await open(path, READ_ONLY).catch(() => undefined)
  if (file === undefined) return undefined
  try {
    if (!(await file.stat()).isFile()) return undefined
    // One that grows is not read for ever.
    const bytes = await buffer(file.createReadStream({ autoClose: false, end: size }))
    return sha256(bytes) === id ? bytes : undefined
  } finally {
    await file.close()
  }
}

/** The verdict on a skill that could not be checked. */
function unchecked (reason: string): Verdict {
  const fix = 'Make all files of the skill readable, and remove what agents do not need'
  const findings = [finding('trust_unchecked', `the skill could not be checked: ${reason}`, fix)]
  const report = { signed: false, signer: null, status: null, checked_revision: '', pinned: null }
  return { isServed: false, report, findings, files: [], revision: '' }
}
