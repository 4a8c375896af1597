import { Parser, type Result } from 'tap-parser'

export interface Failure {
  /** Names of the tests that it is in, the outermost first, and of the assertion. */
  readonly path: readonly string[]
  readonly diagnostics: Readonly<Record<string, unknown>>
}

export interface FileResults {
  /** Calls of `t.test`, and the file itself where it asserts outside of them. */
  readonly tests: number
  readonly failedTests: number
  readonly assertions: number
  readonly failures: readonly Failure[]
  /** Tests that were left out, with the reason. */
  readonly skipped: ReadonlyArray<{ readonly path: readonly string[], readonly reason: string }>
}

/** Reads the TAP of one test file. A test counts as failed for its own assertions, not for those of a test inside it. */
export class TapResults {
  readonly stream: Parser
  #tests = 0
  #failedTests = 0
  #assertions = 0
  readonly #failures: Failure[] = []
  readonly #skipped: Array<{ readonly path: readonly string[], readonly reason: string }> = []

  constructor () {
    this.stream = new Parser()
    this.#read(this.stream, [])
  }

  results (): FileResults {
    return { tests: this.#tests, failedTests: this.#failedTests, assertions: this.#assertions, failures: this.#failures, skipped: this.#skipped }
  }

  #read (parser: Parser, path: readonly string[]): void {
    /** Whether the test that ends next has had a failure inside it. */
    let failedInside = false
    let own = 0
    let failed = false
    parser.on('child', (child: Parser) => {
      failedInside = false
      const before = this.#failures.length
      this.#read(child, [...path, child.name])
      child.on('complete', () => { failedInside = this.#failures.length > before })
    })
    parser.on('assert', (result: Result) => {
      if (result.skip) {
        this.#skipped.push({ path: [...path, result.name], reason: result.skip === true ? '' : result.skip })
        return
      }
      if (result.closingTestPoint) {
        if (result.ok || failedInside) return
      } else {
        own++
        this.#assertions++
        if (result.ok || result.todo) return
      }
      failed = true
      this.#failures.push({ path: [...path, result.name], diagnostics: result.diag ?? {} })
    })
    parser.on('complete', () => {
      if (path.length > 0 || own > 0) this.#tests++
      if (failed) this.#failedTests++
    })
  }
}
