import { delimiter } from 'node:path'
import { splitRoots } from '../sources/address/address.ts'
import { ConfigError, didYouMean, type Environment, quote, type Setting } from '../operator/setting.ts'
import { type Config, type SettingName, SETTINGS } from './settings.ts'

export interface ConfigSources {
  readonly positionals?: readonly string[]
  /** The values of flags, by their names in camel case. */
  readonly options?: Readonly<Record<string, unknown>>
  readonly env: Environment
  /** Folder that relative paths start from. */
  readonly cwd: string
  /** Replaces the default of `skillsDirs`; undefined removes it. */
  readonly defaultFolder?: string | undefined
}

/** A setting with its value, or with its error. */
export interface Resolved {
  readonly name: SettingName
  readonly row: Setting
  /** The flag or variable with the value, or `default`; undefined without a value. */
  readonly origin: string | undefined
  readonly value?: unknown
  readonly error?: ConfigError
}

/**
 * Loads all settings: flags override the environment, which overrides defaults. An empty variable counts as unset,
 * because compose files pass `NAME=` for an unset variable.
 * @throws ConfigError for the first wrong value
 */
export function loadConfig (sources: ConfigSources): Config {
  return Object.fromEntries(resolveSettings(sources).map(({ name, value, error }) => {
    if (error !== undefined) throw error
    return [name, value]
    // Each value is what its row's `parse` returned; no type says so of all rows at once.
  })) as Config
}

/** Resolves all settings, including those with errors. */
export function resolveSettings (sources: ConfigSources): readonly Resolved[] {
  return Object.entries<Setting>(SETTINGS).map(([key, row]) => {
    const name = key as SettingName
    const isFolderDefault = name === 'skillsDirs' && 'defaultFolder' in sources
    const fallback = isFolderDefault ? sources.defaultFolder : row.default
    const { from, mustBe = row.mustBe, texts } = textsOf(row, sources) ??
      { from: 'default', texts: fallback === undefined ? [] : [fallback] }
    const origin = texts.length > 0 ? from : undefined
    try {
      const values = texts.map((text) => valueOf(row, from, mustBe, text, sources.cwd))
      return { name, row, origin, value: row.separator === undefined ? values.at(-1) : [...new Set(values)] }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      return { name, row, origin, error }
    }
  })
}

function valueOf (row: Setting, from: string, mustBe: string, text: string, cwd: string): unknown {
  // A folder may have a blank name, but a blank setting is a mistake.
  const value = text.trim() === '' ? undefined : row.parse(text, cwd)
  if (value !== undefined) return value
  const found = row.isSecret === true ? '' : `, not ${quote(text)}${didYouMean(text, row.words ?? [])}`
  throw new ConfigError(`${from} must be ${mustBe}${found}`)
}

/** Returns the text from the arguments, or else from the environment. */
function textsOf (
  { argument = '', variable, separator, mustBe }: Setting, { positionals = [], options = {}, env }: ConfigSources
): { readonly from: string, readonly mustBe?: string, readonly texts: readonly string[] } | undefined {
  const [, flag = ''] = /^--(\S+)/.exec(argument) ?? []
  const given = argument === 'DIR...' ? positionals : [options[camelCase(flag)] ?? []].flat().map(String)
  if (given.length > 0) return { from: flag === '' ? 'DIR' : `--${flag}`, texts: given }
  const text = env[variable]
  if (!text) return undefined
  if (separator === undefined) return { from: variable, texts: [text] }
  return {
    from: variable,
    mustBe: `${mustBe}, or several joined by "${separator}", none of them empty`,
    texts: separator === delimiter ? splitRoots(text, delimiter) : text.split(separator)
  }
}

function camelCase (flag: string): string {
  return flag.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}
