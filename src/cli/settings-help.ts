import { type Setting, SETTINGS } from '../config.ts'

const HEAD = ['flag', 'environment', 'default', 'meaning'] as const
const MEANING_CHARACTERS = 62
const GAP = '  '

/** The settings as a table in plain text. */
export function settingsHelp (): string {
  const rows: (readonly string[])[] = [HEAD, ...Object.values<Setting>(SETTINGS).flatMap(({ argument = '', variable, default: fallback = 'none', meaning }) => {
    const [line = '', ...more] = wrap(meaning.replaceAll('`', ''))
    return [[argument, variable, fallback, line], ...more.map((text) => ['', '', '', text])]
  })]
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const lines = rows.map((row) => GAP + row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(GAP).trimEnd())
  return `Flags beat the environment, the environment beats defaults.\n\n${lines.join('\n')}\n`
}

function wrap (text: string): string[] {
  return Array.from(text.matchAll(new RegExp(`(.{1,${MEANING_CHARACTERS}})(?: |$)`, 'g')), ([, line = '']) => line)
}
