import type { Setting } from '../config/setting.ts'
import { SETTINGS } from '../config/settings.ts'

/** The settings in plain text, each with its variable and its default. */
export function settingsHelp (): string {
  const rows = Object.values<Setting>(SETTINGS).map(({ argument, variable, default: fallback, meaning }) => {
    const notes = [...argument === undefined ? [] : [variable], ...fallback === undefined ? [] : [`default ${fallback}`]].join(', ')
    return [argument ?? variable, `${meaning.replaceAll('`', '')}${notes === '' ? '' : ` (${notes})`}`] as const
  })
  const width = Math.max(...rows.map(([head]) => head.length))
  const lines = rows.map(([head, text]) => `  ${head.padEnd(width)}  ${text}\n`)
  return `Flags beat the environment, the environment beats defaults. Variables stand in brackets, or alone where there is no flag.\n\n${lines.join('')}`
}
