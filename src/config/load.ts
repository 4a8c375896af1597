import { ConfigError, didYouMean, type Environment, quote, type Setting } from './setting.ts'
import { type Config, type SettingName, SETTINGS } from './settings.ts'

/** Where settings come from. */
export interface ConfigSources {
  /** Arguments that are not flags. */
  readonly positionals: readonly string[]
  /** The values of flags by name without dashes, in the order of the command line. */
  readonly flags: ReadonlyMap<string, readonly string[]>
  readonly env: Environment
  /** What relative folders are relative to. */
  readonly cwd: string
  /** Texts that replace the defaults of the table. */
  readonly defaults?: Readonly<Partial<Record<SettingName, string>>>
}

/** One setting of a process: its value, or what is wrong with it. */
export interface Resolved {
  readonly name: SettingName
  readonly row: Setting
  /** The flag or variable that it comes from, or `default`; undefined for one that has no value. */
  readonly origin: string | undefined
  readonly texts: readonly string[]
  readonly value?: unknown
  readonly error?: ConfigError
}

/**
 * Flags beat the environment, the environment beats defaults. Of a repeated flag of one value the last counts. An empty
 * variable counts as unset, because compose files pass on `NAME=` for what nobody set.
 * @throws ConfigError for the first value that cannot be used
 */
export function loadConfig (sources: ConfigSources): Config {
  return Object.fromEntries(resolveSettings(sources).map(({ name, value, error }) => {
    if (error !== undefined) throw error
    return [name, value]
    // Each value is what its row's `parse` returned; no type says so of all rows at once.
  })) as Config
}

/** All settings, those that cannot be used too. */
export function resolveSettings ({ defaults = {}, ...sources }: ConfigSources): readonly Resolved[] {
  return Object.entries<Setting>(SETTINGS).map(([key, row]) => {
    const name = key as SettingName
    const { from, mustBe, texts, isSet } = textsOf(row, sources, defaults[name] ?? row.default)
    const origin = isSet ? from : texts.length > 0 ? 'default' : undefined
    try {
      return { name, row, origin, texts, value: valueOf(row, from, mustBe, texts, sources.cwd) }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      return { name, row, origin, texts, error }
    }
  })
}

function valueOf (row: Setting, from: string, mustBe: string, texts: readonly string[], cwd: string): unknown {
  const values = texts.map((text) => {
    // The name of a folder may be blank, but nobody means one.
    const value = text.trim() === '' ? undefined : row.parse(text, cwd)
    if (value !== undefined) return value
    const found = row.isSecret === true ? '' : `, not ${quote(text)}${didYouMean(text, row.words ?? [])}`
    throw new ConfigError(`${from} must be ${mustBe}${found}`)
  })
  return row.separator === undefined || values.length === 0 ? values[0] : [...new Set(values)]
}

/** The texts of a setting: arguments, else the environment, else the default. */
function textsOf (row: Setting, sources: Omit<ConfigSources, 'defaults'>, fallback: string | undefined) {
  const { positionals, flags, env } = sources
  const { argument, variable, separator, mustBe, split = (text: string) => text.split(separator ?? '') } = row
  const flag = /^--(\S+)/.exec(argument ?? '')?.[1]
  const given = (flag === undefined ? argument && positionals : flags.get(flag)) || []
  if (given.length > 0) {
    const texts = separator === undefined ? given.slice(-1) : given
    return { from: flag === undefined ? 'DIR' : `--${flag}`, mustBe, texts, isSet: true }
  }
  const text = env[variable]
  if (!text) return { from: variable, mustBe, texts: fallback === undefined ? [] : [fallback], isSet: false }
  if (separator === undefined) return { from: variable, mustBe, texts: [text], isSet: true }
  const several = `${mustBe}, or several joined by "${separator}", none of them empty`
  return { from: variable, mustBe: several, texts: split(text), isSet: true }
}
