import { KNOWN_FIELDS, keysWithoutText } from './fields.ts'
import { isJsonObject, own } from '../ground/json.ts'
import type { Position } from './findings.ts'
import type { FrontmatterLocation } from './frontmatter.ts'
import type { Finding, Frontmatter } from '../ground/skill.ts'

const FIRST: Position = { line: 1, column: 1 }

/** A top-level field at the start of its line: its name, in quotes or not, and what stands before its value. */
const FIELD_LINE = /^(?:"([^"\\]*)"|'([^']*)'|([^\s#"'[\]{},&*!|>%@`-][^:]*?))[ \t]*:(?:[ \t]+|$)/

/** An entry of a mapping inside a field: its indentation, and its name without quotes. */
const ENTRY_LINE = /^([ \t]+)["']?([^\s"':#][^"':]*)["']?[ \t]*:/

/**
 * Adds line and column to findings that have none: those of the field that a finding is about, else those of the first line.
 * Consumers: editors and code scanning. Costs nothing for a file without findings.
 * @param bytes the whole main file
 */
export function locateFindings (findings: readonly Finding[], bytes: Buffer, location: FrontmatterLocation, frontmatter: Frontmatter): readonly Finding[] {
  if (findings.every(({ line }) => line !== undefined)) return findings
  const source = location.kind === 'found' ? bytes.toString('utf8', location.start, location.end) : ''
  const fields = fieldPositions(source)
  return findings.map((found) => {
    if (found.line !== undefined) return found
    const position = found.code === 'metadata_not_text' ? positionOfEntry(source, fields, frontmatter) : undefined
    return { ...found, ...position ?? positionOf(found, fields, bytes, location) }
  })
}

/** Where the first entry of `metadata` is whose value is not text. */
function positionOfEntry (source: string, fields: ReadonlyMap<string, Position>, frontmatter: Frontmatter): Position | undefined {
  const start = fields.get('metadata')?.line
  const metadata = own(frontmatter, 'metadata')
  const [key] = isJsonObject(metadata) ? keysWithoutText(metadata) : []
  if (start === undefined || key === undefined) return undefined
  for (const [index, text] of source.split('\n').entries()) {
    const line = index + 2
    if (line <= start) continue
    const [, indent = '', name = ''] = ENTRY_LINE.exec(text) ?? []
    if (indent !== '' && name === key) return { line, column: indent.length + 1 }
  }
  return undefined
}

/**
 * Where the values of top-level fields begin, by field; of a value that begins in a later line, where the field begins.
 * @param source the frontmatter without its fences
 */
export function fieldPositions (source: string): Map<string, Position> {
  const positions = new Map<string, Position>()
  for (const [index, text] of source.split('\n').entries()) {
    const match = FIELD_LINE.exec(text.replace(/\r$/, ''))
    if (match === null) continue
    const [head, double, single, plain] = match
    const name = double ?? single ?? plain ?? ''
    const hasValue = text.slice(head.length).trim() !== ''
    // The opening fence is the first line.
    if (!positions.has(name)) positions.set(name, { line: index + 2, column: hasValue ? head.length + 1 : 1 })
  }
  return positions
}

function positionOf ({ code, field }: Finding, fields: ReadonlyMap<string, Position>, bytes: Buffer, location: FrontmatterLocation): Position {
  if (field !== undefined) return fields.get(field) ?? FIRST
  if (code === 'body_empty') return { line: lineAt(bytes, location.bodyStart), column: 1 }
  if (code === 'unknown_fields') {
    for (const [name, { line }] of fields) if (!KNOWN_FIELDS.has(name)) return { line, column: 1 }
  }
  return FIRST
}

function lineAt (bytes: Buffer, offset: number): number {
  let line = 1
  for (let at = bytes.indexOf(0x0a); at !== -1 && at < offset; at = bytes.indexOf(0x0a, at + 1)) line++
  return line
}
