/** Formats rows as columns that are as wide as their longest entry, two spaces apart. */
export function inColumns (rows: ReadonlyArray<readonly string[]>): string {
  const widthOf = (column: number): number => rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0)
  const widths = (rows[0] ?? []).map((_, column) => widthOf(column))
  return rows.map((row) => {
    const padded = row.map((entry, column) => entry.padEnd(widths[column] ?? 0))
    return `${padded.join('  ').trimEnd()}\n`
  }).join('')
}
