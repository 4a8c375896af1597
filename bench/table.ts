export interface Row {
  readonly what: string
  readonly limit: string
  readonly measured: string
  readonly isMet: boolean
  readonly note: string
}

interface Figure extends Pick<Row, 'what'>, Partial<Pick<Row, 'note'>> {
  readonly values: readonly number[]
  readonly atMost?: number
  readonly atLeast?: number
  readonly unit?: string
}

/** A figure: the median of its rounds. */
export function rowOf ({ what, values, atMost, atLeast, unit = '', note = '' }: Figure): Row {
  const value = median(values)
  const text = (number: number) => number.toFixed(number >= 20 ? 0 : 2)
  const spread = values.length > 1 ? ` (${text(Math.min(...values))}–${text(Math.max(...values))})` : ''
  return {
    what,
    limit: atLeast === undefined ? `≤ ${atMost}${unit}` : `≥ ${atLeast}${unit}`,
    measured: `${text(value)}${unit}${spread}`,
    isMet: atLeast === undefined ? value <= (atMost ?? Infinity) : value >= atLeast,
    note
  }
}

export function median (values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] ?? NaN : ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2
}

const MAX_COLUMNS = 120

export function toMarkdown (rows: readonly Row[]): string {
  const lines = rows.map(({ what, limit, measured, isMet, note }) => {
    const cells = `| ${what} | ${limit} | ${measured} | ${isMet ? 'met' : '**missed**'} | `
    const room = MAX_COLUMNS - cells.length - ' |'.length
    return `${cells}${note.length > room ? `${note.slice(0, room - 1)}…` : note} |\n`
  })
  return `| what | limit | median (spread) | | |\n|---|---|---|---|---|\n${lines.join('')}`
}
