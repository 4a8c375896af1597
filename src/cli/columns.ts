/** Lines of columns as wide as their longest entry, two spaces apart. */
export function inColumns (rows: ReadonlyArray<readonly string[]>): string {
  const widths = rows[0]?.map((_, column) => rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0)) ?? []
  return rows.map((row) => `${row.map((entry, column) => entry.padEnd(widths[column] ?? 0)).join('  ').trimEnd()}\n`).join('')
}
