import type { PollPhase } from '../disk/poll-phase.ts'
import { skillError } from '../shared/errors.ts'
import { MAX_ATTEMPTS } from '../shared/limits.ts'
import type { MemberLists } from './member-lists.ts'
import { closeUnused, isMissing, type ViewMember } from './view-member.ts'

/** No root has the skill. An answer may be undefined. */
export const NOBODY = Symbol('nobody')
export type Nobody = typeof NOBODY

/** Asks the roots of a view in their order. A skill that moves between roots meanwhile may be found in none, or hide the one that was found. The roots are then asked again. */
export class MemberOrder {
  readonly #lists: () => MemberLists
  readonly #phase: PollPhase

  constructor (lists: () => MemberLists, phase: PollPhase) {
    this.#lists = lists
    this.#phase = phase
  }

  /** Asks all roots until none of them changes meanwhile. */
  async all (ask: () => Promise<unknown>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const before = this.#generations
      await ask()
      if (this.#lists().members.length < 2 || attempt === MAX_ATTEMPTS || before === this.#generations) return
      this.#phase.forget()
    }
  }

  /** What the first root of all has at once: its skills are those of the view, whatever the others have. Saves an answer 4 to 5 % of its CPU time. */
  atOnce<T> (name: string, ask: (skills: ViewMember['skills']) => T | undefined): T | undefined {
    const [first] = this.#lists().members
    return first?.allows(name) === true ? ask(first.skills) : undefined
  }

  /**
   * The answer of the first root that has the skill; NOBODY when none has it.
   * @param ask answers NOBODY, or fails, for a root that does not have it
   * @throws {SkillError} `skill_changing` when a skill moves to another root in every attempt
   */
  async first<T> (name: string, ask: (member: ViewMember) => Promise<T | Nobody>): Promise<T | Nobody> {
    let isKnown = false
    for (let attempt = 1; ; attempt++) {
      const { members } = this.#lists()
      const moves = members.map(({ skills }) => skills.moveCount)
      const folders = members.map(({ skills }) => skills.folderNow(name))
      isKnown ||= folders.some((folder) => folder !== undefined)
      const mayHaveMoved = (): boolean => members.length > 1 && members.some(({ skills }, index) => skills.moveCount !== moves[index] || skills.folderNow(name) !== folders[index])
      let error: unknown
      for (const member of members) {
        try {
          if (!member.allows(name)) continue
          const lacks = this.#isOfAnother(member, name) && member.skills.lacks(name)
          // A root that has not changed is passed over without a promise.
          if (typeof lacks === 'boolean' ? lacks : await lacks) continue
          const answer = await ask(member)
          if (answer === NOBODY) continue
          if (member === members[0] || attempt === MAX_ATTEMPTS || !mayHaveMoved()) return answer
          await closeUnused(answer)
          break
        } catch (thrown) {
          if (isMissing(thrown)) continue
          if (member === members[0]) throw thrown
          error = thrown
          break
        }
      }
      if (mayHaveMoved()) {
        if (attempt < MAX_ATTEMPTS) {
          this.#phase.forget()
          continue
        }
        if (isKnown) error ??= skillError.changing(name)
      }
      if (error !== undefined) throw error
      return NOBODY
    }
  }

  /** Goes up with each change of a root that was noticed. */
  get #generations (): number {
    return this.#lists().members.reduce((sum, { skills }) => sum + skills.generation + skills.moveCount, 0)
  }

  /** A skill of a later root costs no listing of those before it. */
  #isOfAnother (member: ViewMember, name: string): boolean {
    const lists = this.#lists()
    const owner = lists.members.length > 1 ? lists.ownerOf(name) : undefined
    return owner !== undefined && owner !== member
  }
}
