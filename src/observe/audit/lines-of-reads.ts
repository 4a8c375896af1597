import type { SkillService } from '../../core/service.ts'
import type { Journal } from './journal.ts'

/** A line of the log that is still to be written. */
interface LineOfRead {
  /** Of the end of the answer, in milliseconds since 1970. */
  readonly time: number
  /** When the question came: what has changed since may be another state than the one that was read. */
  readonly askedAt: number
  readonly fields: object
  readonly target: object
  /** Of which skill the line gets the revision, and where that is looked up; undefined for a line without. */
  readonly skill: string | undefined
  readonly skills: SkillService | undefined
  /** Known from the answer. */
  readonly revision: string | undefined
  /** Where the skill was at the answer: see `SkillService.folderIdNow`. */
  readonly folderId: string | undefined
}

/** Pause in which lines collect, in milliseconds: the revision of a skill is looked up once for all of them. */
const COLLECT_MS = 100

/** Lines that wait for revisions, or behind others that do. */
const MAX_WAITING = 20_000

/** How long the end of the process waits for revisions, in milliseconds. */
const CLOSE_MS = 1_000

/** Timestamps of files have steps, in milliseconds: a change this shortly before a read may be after it. */
const CHANGE_STEP_MS = 20

/**
 * Lines of reads, which wait for the revisions of their skills. A revision needs the bytes of all files. It is looked up after the
 * answer, once for all reads of a skill within a tenth of a second. It is that of the read unless the skill has changed
 * since, or is another folder by now; then it is null.
 */
export class LinesOfReads {
  readonly #journal: Pick<Journal, 'append'>
  readonly #onDropped: (lines: number) => void
  #waiting: LineOfRead[] = []
  /** Lines that are not written yet, in their order. */
  readonly #held = new Set<LineOfRead>()
  #timer: NodeJS.Timeout | undefined
  #flushing = Promise.resolve()
  /** Ends the wait for the revision that is looked up now. */
  #giveUp = (): void => {}
  #isLate = false
  #dropped = 0
  #reported = 0

  /** @param onDropped gets the number of lines that were dropped since the last report, before others are written */
  constructor (journal: Pick<Journal, 'append'>, onDropped: (lines: number) => void) {
    this.#journal = journal
    this.#onDropped = onDropped
  }

  /** Lines that were dropped because too many waited. */
  get dropped (): number {
    return this.#dropped
  }

  /** Whether at most half of the room for waiting lines is in use. */
  get hasRoom (): boolean {
    return this.#held.size <= MAX_WAITING / 2
  }

  add (line: LineOfRead): void {
    if (this.#held.size >= MAX_WAITING) {
      this.#dropped++
      return
    }
    this.#held.add(line)
    this.#waiting.push(line)
    this.#timer ??= setTimeout(() => { void this.flush() }, COLLECT_MS).unref()
  }

  /** Writes all that waits, in its order. */
  flush (): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const lines = this.#waiting
    this.#waiting = []
    this.#flushing = this.#flushing.then(() => this.#writeAll(lines))
    return this.#flushing
  }

  /** The same at the end of the process: revisions that are not known within a second are null. */
  async close (): Promise<void> {
    const timer = setTimeout(() => {
      this.#isLate = true
      this.#giveUp()
    }, CLOSE_MS)
    await this.flush()
    clearTimeout(timer)
  }

  /** Writes what waits at once, without the revisions that are not known yet: nothing that is asynchronous happens any more. */
  closeNow (): void {
    this.#reportDropped()
    for (const line of this.#held) this.#write(line, line.revision ?? (line.skills === undefined || line.skill === undefined ? undefined : null))
  }

  #reportDropped (): void {
    if (this.#dropped === this.#reported) return
    this.#onDropped(this.#dropped - this.#reported)
    this.#reported = this.#dropped
  }

  async #writeAll (lines: readonly LineOfRead[]): Promise<void> {
    this.#reportDropped()
    const late = new Promise<KnownState>((resolve) => { this.#giveUp = () => { resolve(UNKNOWN) } })
    // The lines that came while those before were waited for: at the end nobody else gives them up.
    if (this.#isLate) this.#giveUp()
    const states = new Map<SkillService, Map<string, Promise<KnownState>>>()
    for (const line of lines) {
      const { skills, skill, askedAt } = line
      if (line.revision !== undefined) this.#write(line, line.revision)
      else if (skills === undefined || skill === undefined) this.#write(line, undefined)
      else {
        let known = states.get(skills)
        if (known === undefined) states.set(skills, known = new Map())
        let state = known.get(skill)
        if (state === undefined) known.set(skill, state = this.#isLate ? late : stateOf(skills, skill))
        const { revision, changedAt, folderId } = await Promise.race([state, late])
        this.#write(line, revision !== undefined && folderId === line.folderId && changedAt < askedAt - CHANGE_STEP_MS ? revision : null)
      }
    }
  }

  #write (line: LineOfRead, revision: string | null | undefined): void {
    const { time, fields, target } = line
    if (!this.#held.delete(line)) return
    this.#journal.append(time, { ...fields, target: revision === undefined ? target : { ...target, revision } })
  }
}

/** The present revision of a skill, the time of its last change, and where its files are. Files put in its place may be older. */
interface KnownState {
  readonly revision: string | undefined
  readonly changedAt: number
  readonly folderId: string | undefined
}

const UNKNOWN: KnownState = { revision: undefined, changedAt: Number.POSITIVE_INFINITY, folderId: undefined }

async function stateOf (skills: SkillService, name: string): Promise<KnownState> {
  try {
    const state = await skills.inspect(name)
    if (state !== undefined && !('ended' in state)) return { ...state, folderId: skills.folderIdNow(name) }
  } catch {
    // The revision is unknown while the disk fails or the skill is being written.
  }
  return UNKNOWN
}
