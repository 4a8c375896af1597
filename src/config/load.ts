import { ConfigError, didYouMean, type Environment, quote, type Setting } from './setting.ts'
import { type Config, type SettingName, SETTINGS } from './settings.ts'

/** What the sources of settings hold, unread. */
export interface ConfigSources {
  /** Arguments that are no flags. */
  readonly positionals: readonly string[]
  /** The values of flags by name without dashes, in the order of the command line. */
  readonly flags: ReadonlyMap<string, readonly string[]>
  readonly env: Environment
  /** What relative folders are relative to. */
  readonly cwd: string
  /** Texts that stand in for the defaults of the table. */
  readonly defaults?: Readonly<Partial<Record<SettingName, string>>>
}

/**
 * Flags beat the environment, the environment beats defaults. Of a repeated flag of one value the last counts. An empty
 * variable counts as unset, because compose files pass on `NAME=` for what nobody set. An empty argument is an error, as any blank text is.
 * @throws ConfigError for a value that cannot be used
 */
export function loadConfig ({ defaults = {}, ...sources }: ConfigSources): Config {
  const rows: readonly (readonly [string, Setting])[] = Object.entries(SETTINGS)
  // Each value is what its row's `parse` returned; no type says so of all rows at once.
  return Object.fromEntries(rows.map(([name, row]) => [name, valueOf(row, sources, defaults[name as SettingName])])) as Config
}

/** The names of all flags that need a value, without dashes. */
export function settingFlags (): string[] {
  return Object.values<Setting>(SETTINGS).filter(({ alone }) => alone === undefined).map(flagOf).filter((flag) => flag !== undefined)
}

/** The flags that need none, with the value that they have alone. */
export function settingsWithoutValue (): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.values<Setting>(SETTINGS).flatMap((row) => row.alone === undefined ? [] : [[flagOf(row) ?? '', row.alone]]))
}

function flagOf ({ argument }: Setting): string | undefined {
  return /^--(\S+)/.exec(argument ?? '')?.[1]
}

function valueOf (row: Setting, sources: Omit<ConfigSources, 'defaults'>, fallback = row.default): unknown {
  const { from, mustBe, texts } = textsOf(row, sources, fallback)
  const values = texts.map((text) => {
    // The name of a folder may be blank, but nobody means one.
    const value = text.trim() === '' ? undefined : row.parse(text, sources.cwd)
    if (value === undefined) throw new ConfigError(`${from} must be ${mustBe}${row.isSecret === true ? '' : `, not ${quote(text)}${didYouMean(text, row.words ?? [])}`}`)
    return value
  })
  if (row.separator === undefined || values.length === 0) return values[0]
  return [...new Set(values)]
}

/** The texts of a setting: arguments, else the environment, else the default. */
function textsOf (row: Setting, { positionals, flags, env }: Omit<ConfigSources, 'defaults'>, fallback: string | undefined) {
  const { argument, variable, separator, mustBe, split = (text: string) => text.split(separator ?? '') } = row
  const flag = flagOf(row)
  const given = (flag === undefined ? argument && positionals : flags.get(flag)) || []
  if (given.length > 0) return { from: flag === undefined ? 'DIR' : `--${flag}`, mustBe, texts: separator === undefined ? given.slice(-1) : given }
  const text = env[variable]
  if (!text) return { from: variable, mustBe, texts: fallback === undefined ? [] : [fallback] }
  if (separator === undefined) return { from: variable, mustBe, texts: [text] }
  return { from: variable, mustBe: `${mustBe}, or several joined by "${separator}", none of them empty`, texts: split(text) }
}
