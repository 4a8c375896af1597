/**
 * The latest events of one sequence, to resume from. An id names the state after its event, so several events may
 * have one. The state may come back, and a change may not show in it.
 */
export class RecentEvents<Event extends { readonly id: string }> {
  readonly #limit: number
  readonly #events: Event[] = []
  /** Id of the state before the first of the events. */
  #base: string

  /**
   * @param limit how many are kept
   * @param base id of the beginning
   */
  constructor (limit: number, base: string) {
    this.#limit = limit
    this.#base = base
  }

  /** Id of the latest event, or of the beginning. */
  get position (): string {
    return this.#events.at(-1)?.id ?? this.#base
  }

  add (event: Event): Event {
    this.#events.push(event)
    const dropped = this.#events.length > this.#limit ? this.#events.shift() : undefined
    if (dropped !== undefined) this.#base = dropped.id
    return event
  }

  /**
   * All events after the latest state with this id; undefined when the id is not, or no longer, known. Of events
   * without a difference between them, the first is taken for the last that was received.
   */
  after (id: string): readonly Event[] | undefined {
    let count = this.#events.findLastIndex((event) => event.id === id) + 1
    if (count === 0 && id !== this.#base) return undefined
    while (count > 0 && this.#idBefore(count - 1) === id) count--
    return this.#events.slice(count)
  }

  /** Id of the state before an event. */
  #idBefore (index: number): string {
    return this.#events[index - 1]?.id ?? this.#base
  }
}
