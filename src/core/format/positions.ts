import type { Finding } from '../shared/skill.ts'
import type { Position } from './findings.ts'

/** A field at the start of its line, up to its value. No two parts can match the same blanks, so that it is linear. */
const FIELD_LINE = /^(?:"([^"\\]*)"[ \t]*|'([^']*)'[ \t]*|([^\s#"'[\]{},&*!|>%@`-][^:]*)):(?:[ \t]+|$)/

/** Adds line and column to findings that have none: those of their field, else of the first line. */
export function locateFindings (findings: readonly Finding[], source: string): readonly Finding[] {
  if (findings.every(({ line }) => line !== undefined)) return findings
  const fields = fieldPositions(source)
  return findings.map((found) => found.line === undefined
    ? { ...found, ...fields.get(found.field ?? '') ?? { line: 1, column: 1 } }
    : found)
}

/** Returns where the values of top-level fields begin; or the field, if its value begins in a later line. */
export function fieldPositions (source: string): Map<string, Position> {
  const positions = new Map<string, Position>()
  for (const [index, line] of source.split(/\r?\n/).entries()) {
    const [head, double, single, plain] = FIELD_LINE.exec(line) ?? []
    const name = double ?? single ?? plain?.trimEnd()
    if (head === undefined || name === undefined || positions.has(name)) continue
    // Line 1 is the opening fence.
    positions.set(name, { line: index + 2, column: head.length === line.length ? 1 : head.length + 1 })
  }
  return positions
}
