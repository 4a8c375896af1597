import type { FastifyRequest } from 'fastify'
import { isMainFile } from '../../core/format/main-files.ts'
import { copyOf } from '../../core/shared/text.ts'
import type { Observer } from '../../http/observer.ts'
import { type Read, readOfCall, readOfOperation, readOfRequest } from '../reads.ts'

/** Skills with series of their own; the rest share one. */
const MAX_SKILLS = 1_000
const OTHER = '_other'

/** The series of a skill that is gone stays this long, in milliseconds, so that the last reads are scraped. */
const KEEP_MS = 3_600_000

interface SkillReadsOptions {
  /** Names that the catalog holds. The same array while nothing changes. */
  readonly namesNow: () => readonly string[]
  readonly now?: () => number
}

/**
 * Reads of main files by skill and door. A 304 and an archive are reads too: the caller has the text. Names are those of the
 * catalog and never a caller's text, and whoever may read the metrics may read them.
 */
export class SkillReads {
  readonly #bySkill = new Map<string, { readonly doors: Map<string, number>, goneSince: number | undefined }>()
  readonly #namesNow: () => readonly string[]
  readonly #now: () => number
  #names: readonly string[] = []
  #known: ReadonlySet<string> = new Set()

  constructor ({ namesNow, now = Date.now }: SkillReadsOptions) {
    this.#namesNow = namesNow
    this.#now = now
  }

  count ({ event, skill, path, door }: Read): void {
    const hasMainFile = event === 'skill.read' || event === 'skill.archive' || (event === 'skill.file_read' && isMainFile(path ?? ''))
    if (!hasMainFile || skill === undefined || !this.#isKnown(skill)) return
    const name = this.#bySkill.has(skill) || this.#bySkill.size < MAX_SKILLS ? skill : OTHER
    let entry = this.#bySkill.get(name)
    // A copy: the name is a part of its request's URL.
    if (entry === undefined) this.#bySkill.set(copyOf(name), entry = { doors: new Map(), goneSince: undefined })
    entry.doors.set(door, (entry.doors.get(door) ?? 0) + 1)
  }

  /** Forgets skills that have been gone for an hour. */
  rows (): Array<readonly [skill: string, door: string, reads: number]> {
    for (const [name, entry] of this.#bySkill) {
      if (name === OTHER || this.#isKnown(name)) entry.goneSince = undefined
      else if (this.#now() - (entry.goneSince ??= this.#now()) > KEEP_MS) this.#bySkill.delete(name)
    }
    return [...this.#bySkill].flatMap(([name, { doors }]) => [...doors].map(([door, reads]) => [name, door, reads] as const))
  }

  #isKnown (name: string): boolean {
    const names = this.#namesNow()
    if (names !== this.#names) {
      this.#names = names
      this.#known = new Set(names)
    }
    return this.#known.has(name)
  }
}

/** Counts the reads that succeed. */
export function observeReads (reads: Pick<SkillReads, 'count'>): Observer {
  return {
    onRequest () {},
    onResponse (request, _reply, { status }) {
      // HEAD gives nobody the bytes; a 304 goes to one who has them.
      const hasBytes = request.method !== 'HEAD' && (status < 300 || status === 304)
      const read = hasBytes ? readOfRequest(request) : undefined
      if (read !== undefined) reads.count(read)
    },
    onCall (call) {
      const request = call.origin as FastifyRequest | undefined
      return request && ((result, outcome) => {
        const read = result === 'ok' ? readOfCall(call, request, outcome) : undefined
        if (read !== undefined) reads.count(read)
      })
    },
    onOperation (operation) {
      const read = readOfOperation(operation)
      return read && (({ error }) => { if (error === undefined) reads.count(read) })
    }
  }
}
