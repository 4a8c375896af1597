import { parseArgs } from 'node:util'
import { nearest } from '../core/shared/nearest.ts'
import { quote } from '../config/setting.ts'
import { type Arguments, CommandError } from './command.ts'

/** Flags without a value, which every command takes. */
const SWITCHES = { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean', short: 'v' } } as const

/** What a file given to such a flag ends with: `--locked DIR` names a folder of skills and no file. */
const OPTIONAL_VALUE = /\.lock$/

/**
 * Reads the arguments behind a command's name. A value that begins with `--` is given as `--flag=--value`.
 * @param valueFlags names of the flags that take a value
 * @param switches names of the flags that take none
 * @param optional flags that may have a value, `--flag=VALUE`, with the value that they have without
 * @throws CommandError for a flag that is unknown, lacks its value or has one too many
 */
export function parseArguments (argv: readonly string[], valueFlags: readonly string[] = [], switches: readonly string[] = [], optional: Readonly<Record<string, string>> = {}): Arguments {
  const options = {
    ...Object.fromEntries(valueFlags.map((flag) => [flag, { type: 'string' as const }])),
    ...Object.fromEntries([...switches, ...Object.keys(optional)].map((flag) => [flag, { type: 'boolean' as const }])),
    ...SWITCHES
  }
  // Not strict: parseArgs' own refusals are several sentences long and name no alternatives.
  const { tokens } = parseArgs({ args: [...argv], options, allowPositionals: true, strict: false, tokens: true })
  const flags = new Map<string, string[]>()
  const positionals: string[] = []
  let open: string | undefined
  for (const token of tokens) {
    if (token.kind === 'positional' && open !== undefined && OPTIONAL_VALUE.test(token.value)) flags.set(open, [...flags.get(open)?.slice(0, -1) ?? [], token.value])
    else if (token.kind === 'positional') positionals.push(token.value)
    open = undefined
    if (token.kind !== 'option') continue
    const { name, rawName, value = '', inlineValue } = token
    if (!Object.hasOwn(options, name)) {
      const near = nearest(name, Object.keys(options))
      const all = Object.keys(options).map((flag) => `--${flag}`).join(', ')
      throw new CommandError(`${quote(rawName)} is not a flag, ${near === undefined ? `there are ${all}` : `did you mean ${quote(`--${near}`)}? (flags: ${all})`}`)
    }
    const isSwitch = Object.hasOwn(SWITCHES, name) || switches.includes(name)
    const fallback = Object.hasOwn(optional, name) ? optional[name] : undefined
    if (fallback !== undefined && !inlineValue) open = name
    if (isSwitch && inlineValue) throw new CommandError(`${rawName} takes no value, not ${quote(value)}`)
    if (!isSwitch && fallback === undefined && !inlineValue && (token.value === undefined || value.startsWith('--'))) throw new CommandError(`${rawName} needs a value`)
    flags.set(name, [...flags.get(name) ?? [], open === undefined ? value : fallback ?? ''])
  }
  return { positionals, flags }
}
