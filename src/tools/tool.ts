import { type TObject, Type } from '@sinclair/typebox'
import { SkillError, type SkillErrorKind } from '../core/shared/errors.ts'
import type { View } from '../core/view.ts'

/** Subset of JSON Schema that every provider accepts. Keys are sent in the order of the source documents. */
export interface ToolParameters {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, { readonly type: 'string' | 'integer', readonly description: string }>>
  readonly required: readonly string[]
  readonly additionalProperties?: false
}

/** Groups of tools that a model is given together. */
export const TOOLSETS = ['reader', 'explore', 'wave', 'neovate'] as const
export type Toolset = (typeof TOOLSETS)[number]

/** Arguments of a call: an object from outside. Read own properties only. */
export type ToolArguments = Readonly<Record<string, unknown>>

/** Error for arguments that do not fit: `Invalid tool arguments: …`, or a sentence of the tool's own. */
export class ToolArgumentsError extends Error {
  override readonly name = 'ToolArgumentsError'
}

/** Refuses a call after the results of its request have reached their limit. */
export class ToolLimitError extends Error {
  override readonly name = 'ToolLimitError'
}

/** Callers see the message. */
export type ToolFailure = SkillError | ToolArgumentsError | ToolLimitError

export class ToolOutcome {
  /** As the tool's source document defines it. */
  readonly result: object
  readonly isError: boolean
  /** Kind of the error if a skill or file could not be read. */
  readonly errorKind: SkillErrorKind | undefined
  /** Folder name of the skill that was read, if the call gave another name. */
  readonly skill: string | undefined
  #text: string | undefined

  /**
   * @param text text that the model reads; default: the result as JSON
   * @param failure reason of a failure, or true without one
   * @param skill folder name of the skill, if the call gave another name
   */
  constructor (result: object, text?: string, failure: ToolFailure | boolean = false, skill?: string) {
    this.result = result
    this.#text = text
    this.isError = failure !== false
    this.errorKind = failure instanceof SkillError ? failure.kind : undefined
    this.skill = skill
  }

  /** Text that the model reads. */
  get text (): string {
    this.#text ??= spacedJson(this.result)
    return this.#text
  }
}

/** Example of a call and its outcome, for the OpenAPI document. */
export interface ToolExample {
  readonly args: ToolArguments
  readonly outcome: ToolOutcome
}

/** Name of a read in the audit log, and the argument that has its path or query. */
export type ToolRead =
  | { readonly event: 'skill.read' | 'skill.manifest' | 'skill.entry' | 'skill.list' }
  | { readonly event: 'skill.file_read', readonly pathArgument: string }
  | { readonly event: 'skill.search', readonly queryArgument: string }

/** Tool: data and one handler, from which every dialect, REST, MCP and OpenAPI are rendered. It keeps no skills. */
export interface Tool {
  readonly name: string
  readonly toolset: Toolset
  /** Fixed description, from the source document. */
  readonly description: string
  readonly parameters: ToolParameters
  /** Purpose, in words that follow the name, for the instructions of the MCP server. */
  readonly purpose?: string
  /** Argument that names a skill: `skill_name` is a folder name, `skill` a display name, which is trimmed. */
  readonly skillArgument?: 'skill_name' | 'skill'
  /** Read for the audit log and the counts of reads. Required, so that no tool reads unrecorded. */
  readonly reads: ToolRead
  /** Schemas of the result object of a successful call, and of a failed one. */
  readonly resultSchema: TObject
  readonly failureSchema: TObject
  readonly example: ToolExample
  /** Whether calls use up more of a caller's limit, and are refused first under overload. Default: no. */
  readonly isCostly?: boolean

  /** Returns a description that lists the present skills, if the source document has one. */
  currentDescription? (skills: View): string

  /**
   * Returns the skills that a call answers about without naming them, so that their revisions can be checked too.
   * @throws {ToolArgumentsError | SkillError} as `run`
   */
  skillsOf? (args: ToolArguments, skills: View): Promise<readonly string[]>

  /**
   * Runs one call on the skills that its caller may see.
   * @throws {ToolArgumentsError} if the arguments do not fit
   * @throws {SkillError} if a skill or file cannot be read; `fail` gives it the tool's own form
   */
  run (args: ToolArguments, skills: View): Promise<ToolOutcome>

  /** Returns a failure in the tool's own form; `args` is `{}` if the arguments could not be read. */
  fail (error: ToolFailure, args: ToolArguments, skills: View): Promise<ToolOutcome>
}

export const ErrorResultSchema = Type.Object({ error: Type.String() }, { title: 'Failure' })

/** Returns the failure of tools whose result is JSON: `{"error":<sentence>}`. */
export async function failWithError (error: ToolFailure): Promise<ToolOutcome> {
  return new ToolOutcome({ error: error.message }, undefined, error)
}

/** Formats JSON as Python's `json.dumps(…, ensure_ascii=False)` does: with a space after each colon and comma. */
export function spacedJson (value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => spacedJson(item)).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}: ${spacedJson(member)}`)
    return `{${members.join(', ')}}`
  }
  return JSON.stringify(value)
}
