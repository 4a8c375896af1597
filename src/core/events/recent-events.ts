import { randomBytes } from 'node:crypto'

const ID = /^([\da-f]{12})-(0|[1-9]\d{0,14})$/

/**
 * The latest events of one sequence. An event's id is `<sequence>-<number>`, and each sequence has a random name: ids of an
 * earlier sequence, of another process or of a replica are unknown here.
 */
export class RecentEvents<Event> {
  readonly #sequence = randomBytes(6).toString('hex')
  readonly #limit: number
  readonly #events: Event[] = []
  #count = 0

  /** @param limit how many are kept */
  constructor (limit: number) {
    this.#limit = limit
  }

  /** Id of the latest event, or of the beginning. */
  get position (): string {
    return `${this.#sequence}-${this.#count}`
  }

  /** @param make the event with the id that it gets */
  add (make: (id: string) => Event): Event {
    this.#count++
    const event = make(this.position)
    this.#events.push(event)
    if (this.#events.length > this.#limit) this.#events.shift()
    return event
  }

  /** All events after the one with this id; undefined when the id is too old, of another sequence, or none. */
  after (id: string): readonly Event[] | undefined {
    const [, sequence, number] = ID.exec(id) ?? []
    const missed = this.#count - Number(number)
    if (sequence !== this.#sequence || missed < 0 || missed > this.#events.length) return undefined
    return this.#events.slice(this.#events.length - missed)
  }
}
