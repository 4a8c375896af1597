import type { Setting } from '../operator/setting.ts'
import { SETTINGS } from '../config/settings.ts'

const MAX_LINE_CHARACTERS = 120
const GAP = '  '

/** The settings as a table in plain text. */
export function settingsHelp (): string {
  const rows = Object.values<Setting>(SETTINGS).map(({ argument = '', variable, default: fallback = 'none', meaning }) => {
    return { cells: [argument, variable, fallback], meaning: meaning.replaceAll('`', '') }
  })
  const table = [{ cells: ['flag', 'environment', 'default'], meaning: 'meaning' }, ...rows]
  const widths = [0, 1, 2].map((column) => Math.max(...table.map(({ cells }) => cells[column]?.length ?? 0)))
  const indent = ' '.repeat(widths.reduce((sum, width) => sum + width + GAP.length, GAP.length))
  const lines = table.map(({ cells, meaning }) => {
    const head = cells.map((cell, column) => GAP + cell.padEnd(widths[column] ?? 0)).join('')
    return `${head}${GAP}${wrap(meaning, MAX_LINE_CHARACTERS - indent.length).join(`\n${indent}`)}\n`
  })
  return `Flags beat the environment, the environment beats defaults.\n\n${lines.join('')}`
}

function wrap (text: string, characters: number): string[] {
  return Array.from(text.matchAll(new RegExp(`(.{1,${characters}})(?: |$)`, 'g')), ([, line = '']) => line)
}
