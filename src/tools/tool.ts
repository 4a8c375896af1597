import { type TObject, Type } from '@sinclair/typebox'
import { SkillError, type SkillErrorKind } from '../core/shared/errors.ts'
import type { View } from '../core/view.ts'

/** The plain subset of JSON Schema that every provider accepts. Keys are sent in the order of the source documents. */
export interface ToolParameters {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, { readonly type: 'string' | 'integer', readonly description: string }>>
  readonly required: readonly string[]
  readonly additionalProperties?: false
}

/** Groups of tools that belong together in one request to a model. */
export const TOOLSETS = ['reader', 'explore', 'wave', 'neovate'] as const
export type Toolset = (typeof TOOLSETS)[number]

/** Arguments of a call: an object from outside. Read own properties only. */
export type ToolArguments = Readonly<Record<string, unknown>>

/** A call whose arguments do not fit: `Invalid tool arguments: …`, or a tool's own sentence. */
export class ToolArgumentsError extends Error {
  override readonly name = 'ToolArgumentsError'
}

/** Refuses a call after the results of its request have reached their limit. */
export class ToolLimitError extends Error {
  override readonly name = 'ToolLimitError'
}

/** Callers see the message. */
export type ToolFailure = SkillError | ToolArgumentsError | ToolLimitError

/** The result of a call. */
export class ToolOutcome {
  /** As the tool's source document defines it. */
  readonly result: object
  readonly isError: boolean
  /** Why a skill or file could not be read. */
  readonly errorKind: SkillErrorKind | undefined
  /** The folder name of the skill that was read, where the call gave another name. */
  readonly skill: string | undefined
  #text: string | undefined

  /**
   * @param text what the model reads; default: the result as JSON
   * @param failure the reason for an error, or true for an error without one
   * @param skill see the member
   */
  constructor (result: object, text?: string, failure: ToolFailure | boolean = false, skill?: string) {
    this.result = result
    this.#text = text
    this.isError = failure !== false
    this.errorKind = failure instanceof SkillError ? failure.kind : undefined
    this.skill = skill
  }

  /** What the model reads. */
  get text (): string {
    this.#text ??= spacedJson(this.result)
    return this.#text
  }
}

/** A call and its outcome, for the OpenAPI document. */
export interface ToolExample {
  readonly args: ToolArguments
  readonly outcome: ToolOutcome
}

/** What a call reads, by the name that the audit log has for it, and the argument that says more. */
export type ToolRead =
  | { readonly event: 'skill.read' | 'skill.manifest' | 'skill.entry' | 'skill.list' }
  | { readonly event: 'skill.file_read', readonly pathArgument: string }
  | { readonly event: 'skill.search', readonly queryArgument: string }

/** A tool is data and one handler, rendered for every dialect, REST, MCP and OpenAPI. It holds no skills. */
export interface Tool {
  readonly name: string
  readonly toolset: Toolset
  /** The fixed description of the source document. */
  readonly description: string
  readonly parameters: ToolParameters
  /** Its purpose, in words that follow its name: part of the instructions of the MCP server. */
  readonly purpose?: string
  /** The argument that names a skill: `skill_name` is a folder's name, `skill` a display name, which is trimmed. */
  readonly skillArgument?: 'skill_name' | 'skill'
  /** For the audit log and the counts of reads: required, so that no tool reads unseen. */
  readonly reads: ToolRead
  /** The result object of a call that succeeded, and that of one that failed. */
  readonly resultSchema: TObject
  readonly failureSchema: TObject
  readonly example: ToolExample
  /** Whether calls count more towards a caller's limit, and are refused first under overload. Default: no. */
  readonly isCostly?: boolean

  /** A description that follows the catalog, where the source document wants one. */
  currentDescription? (skills: View): string

  /**
   * The skills that a call answers about although it names none: they too must have a revision that a request asks for.
   * @throws {ToolArgumentsError | SkillError} as `run`
   */
  skillsOf? (args: ToolArguments, skills: View): Promise<readonly string[]>

  /**
   * Runs one call on the skills that its caller may see.
   * @throws {ToolArgumentsError} when the arguments do not fit
   * @throws {SkillError} when the domain says no; `fail` makes it the tool's own error form
   */
  run (args: ToolArguments, skills: View): Promise<ToolOutcome>

  /** The tool's own form of a failure; `args` are `{}` when they could not be read. */
  fail (error: ToolFailure, args: ToolArguments, skills: View): Promise<ToolOutcome>
}

export const ErrorResultSchema = Type.Object({ error: Type.String() }, { title: 'Failure' })

/** The failure of tools whose result is JSON: `{"error":<sentence>}`. */
export async function failWithError (error: ToolFailure): Promise<ToolOutcome> {
  return new ToolOutcome({ error: error.message }, undefined, error)
}

/** JSON as Python's `json.dumps(…, ensure_ascii=False)` writes it: a blank after each colon and comma. */
export function spacedJson (value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => spacedJson(item)).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}: ${spacedJson(member)}`)
    return `{${members.join(', ')}}`
  }
  return JSON.stringify(value)
}
