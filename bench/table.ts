export interface Row {
  readonly what: string
  readonly against: string
  /** The limit, as in `≤ 4`. */
  readonly target: string
  readonly measured: string
  readonly note: string
  /** Undefined for a row that is shown for orientation only. */
  readonly pass: boolean | undefined
}

export function median (values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

export function spread (values: readonly number[], digits = 2): string {
  return `${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)}`
}

export function toMarkdown (rows: readonly Row[]): string {
  const lines = rows.map(({ what, against, target, measured, note, pass }) =>
    `| ${what} | ${against} | ${target} | ${measured} | ${pass === undefined ? '–' : pass ? 'met' : '**missed**'} | ${note} |`)
  return ['| what | against | limit | median (spread) | | |', '|---|---|---|---|---|---|', ...lines].join('\n')
}
