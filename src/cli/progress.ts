import { counted, grouped } from '../core/shared/text.ts'

/** A command that ends within this time says nothing, in milliseconds. */
const QUIET_MS = 1_000
/** Between two states of the line, in milliseconds. */
const BETWEEN_MS = 100

const ERASE_LINE = '\r\u001B[K'

/** One line on a terminal that says how far a command is. What is written next takes its place. */
export class ProgressLine {
  readonly #write: (text: string) => void
  #pauseMs = QUIET_MS
  #text = ''
  #timer: NodeJS.Timeout | undefined
  #isShown = false

  /** @param write to the terminal */
  constructor (write: (text: string) => void) {
    this.#write = write
  }

  /** @param text short enough for a line */
  show (text: string): void {
    this.#text = text
    this.#timer ??= setTimeout(() => { this.#draw() }, this.#pauseMs).unref()
  }

  /** Before anything else is written. The next call of `show` brings the line back. */
  erase (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isShown) this.#write(ERASE_LINE)
    this.#isShown = false
  }

  #draw (): void {
    this.#timer = undefined
    this.#pauseMs = BETWEEN_MS
    this.#isShown = true
    this.#write(ERASE_LINE + this.#text)
  }
}

/** For work that says how much is done, and of how much. Undefined where nobody looks. */
export function showing (
  progress: ((text: string) => void) | undefined, noun: string
): ((done: number, total: number, what?: string) => void) | undefined {
  return progress && ((done, total, what = noun) => { progress(`${grouped(done)} of ${counted(total, what)}`) })
}
