import { hash, randomBytes } from 'node:crypto'

export interface JournalOptions {
  /** Takes whole lines; never waits. */
  readonly output: { write (line: string): void }
  /** The last line that a process before this one has written. */
  readonly last?: string | undefined
}

/** Lines of JSON, each with the SHA-256 of the line before it: that one was changed, or that some were cut out, can be seen. */
export class Journal {
  readonly #output: JournalOptions['output']
  readonly #processId = randomBytes(4).toString('hex')
  #count = 0
  #prev: string | null

  constructor ({ output, last }: JournalOptions) {
    this.#output = output
    this.#prev = last === undefined ? null : hash('sha256', last)
  }

  append (time: number, fields: object): void {
    const id = `${time.toString(36)}-${this.#processId}-${(++this.#count).toString(36).padStart(6, '0')}`
    const line = JSON.stringify({ time: new Date(time).toISOString(), id, ...fields, prev: this.#prev })
    this.#prev = hash('sha256', line)
    this.#output.write(`${line}\n`)
  }
}
