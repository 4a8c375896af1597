import type { SkillError } from '../core/errors.ts'
import type { Awaitable } from '../core/async.ts'

/** The plain subset of JSON Schema that every provider accepts. Key order is the seeds': it is sent as it is. */
export interface ToolParameters {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, { readonly type: 'string' | 'integer', readonly description: string }>>
  readonly required: readonly string[]
  readonly additionalProperties?: false
}

export type Toolset = 'reader' | 'search' | 'wave' | 'neovate'

/** Arguments of a call: an object from outside. Read own properties only. */
export type ToolArguments = Readonly<Record<string, unknown>>

/** A call whose arguments do not fit: `Invalid tool arguments: …`, or a tool's own sentence. */
export class ToolArgumentsError extends Error {
  override readonly name = 'ToolArgumentsError'
}

/** A call that is answered with a refusal because its request has used up what it may have. */
export class ToolLimitError extends Error {
  override readonly name = 'ToolLimitError'
}

/** Why a call has no result. Every message is complete and safe to show. */
export type ToolFailure = SkillError | ToolArgumentsError | ToolLimitError

/**
 * What a call came to, in the tool's own terms. Renderings are made on first use and kept: outcomes of an unchanged
 * document are shared between calls, so that its text is escaped once.
 */
export class ToolOutcome {
  readonly isError: boolean
  /** The tool's own result object, as its source document defines it. */
  readonly result: object
  /** Of the skill, in the state that the result was made from; undefined where no one skill is concerned, or it is not known. */
  readonly revision: string | undefined
  #render: (() => string) | undefined
  #text: string | undefined
  #quotedText: string | undefined
  #json: string | undefined

  /** @param text what the model reads, or how to make it. */
  constructor (result: object, text: string | (() => string), isError = false, revision?: string) {
    this.result = result
    this.isError = isError
    this.revision = revision
    if (typeof text === 'string') this.#text = text
    else this.#render = text
  }

  /** What the model reads. */
  get text (): string {
    if (this.#text === undefined) {
      this.#text = this.#render?.() ?? ''
      this.#render = undefined
    }
    return this.#text
  }

  /** `text` as a JSON string literal, quotes included. */
  get quotedText (): string {
    this.#quotedText ??= JSON.stringify(this.text)
    return this.#quotedText
  }

  /** `result` as JSON without spaces. */
  get json (): string {
    this.#json ??= JSON.stringify(this.result)
    return this.#json
  }
}

/** A tool is data plus one handler: defined once, rendered for every dialect, REST and OpenAPI. */
export interface Tool {
  readonly name: string
  readonly toolset: Toolset
  /** The description in the function definition: fixed, the source document's words. */
  readonly description: string
  readonly parameters: ToolParameters
  /** A description that follows the catalog, where the source document wants one. */
  readonly currentDescription?: () => string

  /**
   * The handler.
   * @throws {ToolArgumentsError} when the arguments do not fit
   * @throws {SkillError} when the domain says no; `fail` makes it the tool's own error form
   */
  run (args: ToolArguments): Awaitable<ToolOutcome>

  /** The tool's own form of a failure; `args` are the call's, as far as they could be read. */
  fail (error: ToolFailure, args: ToolArguments): Awaitable<ToolOutcome>
}
