import { nearest } from '../core/shared/nearest.ts'
import { printable } from '../core/shared/text.ts'

/** An error in a setting, a file or an argument that its author can fix. The message is one line. */
export class ConfigError extends Error {
  override readonly name: string = 'ConfigError'
}

/** The environment of the process. Only the command line reads it, and passes it on. */
export type Environment = Readonly<Record<string, string | undefined>>

export interface Setting {
  /** Parses a text; returns undefined if it is invalid. Relative paths start at `cwd`. */
  readonly parse: (text: string, cwd: string) => unknown
  /** All texts that are allowed, where these are words. */
  readonly words?: readonly string[]
  /** Completes the sentence "PORT must be …". */
  readonly mustBe: string
  /** The flag with its value (`--port PORT`), or `DIR...` for the other arguments. Absent: environment only. */
  readonly argument?: string
  readonly variable: string
  /** Default as text, which is parsed like any other. Absent: undefined. */
  readonly default?: string
  /** The value of a flag that is given without one (`--locked`). Absent: the flag needs a value. */
  readonly alone?: string
  /** For settings with several values: their separator in the variable. A flag or argument has one value. */
  readonly separator?: string
  /** Errors do not quote the value. */
  readonly isSecret?: true
  /** Description for `--help` and, as Markdown, for the documentation. */
  readonly meaning: string
  /** Page below docs and heading with more information. */
  readonly more?: string
}

const MAX_QUOTED_CHARACTERS = 80

/** Quotes a foreign text on one line, whatever is in it. */
export function quote (text: string): string {
  const shown = text.length > MAX_QUOTED_CHARACTERS ? `${text.slice(0, MAX_QUOTED_CHARACTERS)}…` : text
  return printable(JSON.stringify(shown))
}

/** Ends a sentence about an unknown word with the nearest known word, if one is near. */
export function didYouMean (word: string, words: readonly string[]): string {
  const near = nearest(word, words)
  return near === undefined ? '' : `, did you mean ${quote(near)}?`
}

/** Returns what is wrong with a name that no folder of skills has. */
export function noSuchRoot (name: string, roots: readonly string[]): string {
  const all = `there ${roots.length === 1 ? 'is only' : 'are'} ${roots.map(quote).join(', ')}`
  return `is not the name of a folder of skills: ${all}${didYouMean(name, roots)}`
}
