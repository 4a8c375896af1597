import { KNOWN_FIELDS, keysWithoutText } from './fields.ts'
import { isJsonObject, own } from '../shared/json.ts'
import { MAX_FRONTMATTER_BYTES } from '../shared/limits.ts'
import type { Position } from './findings.ts'
import type { FrontmatterLocation } from './fences.ts'
import type { Finding, Frontmatter } from '../shared/skill.ts'

const FIRST: Position = { line: 1, column: 1 }

/**
 * A field at the start of its line: its name, in quotes or not, and what stands before its value. No two parts of the
 * expression can take the same blanks: the author of a skill chooses how many there are.
 */
const FIELD_LINE = /^(?:"([^"\\]*)"[ \t]*|'([^']*)'[ \t]*|([^\s#"'[\]{},&*!|>%@`-][^:]*)):(?:[ \t]+|$)/

/**
 * Adds line and column to findings that have none, for editors and code scanning: those of the field that a finding is
 * about, else those of the first line.
 * @param bytes the whole main file
 */
export function locateFindings (
  findings: readonly Finding[], bytes: Buffer, location: FrontmatterLocation, frontmatter: Frontmatter
): readonly Finding[] {
  if (findings.every(({ line }) => line !== undefined)) return findings
  const source = location.kind === 'found' ? bytes.toString('utf8', location.start, location.end) : ''
  const fields = fieldPositions(source)
  const firstUnknown = (): Position => {
    const line = [...fields].find(([name]) => !KNOWN_FIELDS.has(name))?.[1].line
    return line === undefined ? FIRST : { line, column: 1 }
  }
  const positionOf = ({ code, field }: Finding): Position => {
    switch (code) {
      case 'metadata_not_text': return positionOfEntry(source, fields, frontmatter) ?? fields.get('metadata') ?? FIRST
      case 'body_empty': return { line: lineAt(bytes, Math.min(location.bodyStart, bytes.length - 1)), column: 1 }
      case 'unknown_fields': return firstUnknown()
      default: return fields.get(field ?? '') ?? FIRST
    }
  }
  return findings.map((found) => found.line === undefined ? { ...found, ...positionOf(found) } : found)
}

/** Where the first entry of `metadata` is whose value is not text. */
function positionOfEntry (
  source: string, fields: ReadonlyMap<string, Position>, frontmatter: Frontmatter
): Position | undefined {
  const start = fields.get('metadata')?.line
  const metadata = own(frontmatter, 'metadata')
  if (start === undefined || !isJsonObject(metadata)) return undefined
  const keys = new Set(keysWithoutText(metadata))
  let depth: number | undefined
  for (const [index, text] of linesOf(source).entries()) {
    const line = index + 2
    const entry = text.trimStart()
    if (line <= start || entry === '' || entry.startsWith('#')) continue
    const indent = text.length - entry.length
    if (indent === 0) return undefined
    // Lines that are indented further belong to the value of an entry.
    depth ??= indent
    if (indent === depth && keys.has(fieldIn(entry)?.name ?? '')) return { line, column: indent + 1 }
  }
  return undefined
}

/**
 * Where the values of top-level fields begin, by field; where the field begins if its value begins in a later line.
 * @param source the frontmatter without its fences; one that is too large has no positions
 */
export function fieldPositions (source: string): Map<string, Position> {
  const positions = new Map<string, Position>()
  for (const [index, text] of linesOf(source).entries()) {
    const field = fieldIn(text)
    if (field === undefined || positions.has(field.name)) continue
    const isBelow = text.slice(field.valueAt).trim() === ''
    // The opening fence is the first line.
    positions.set(field.name, { line: index + 2, column: isBelow ? 1 : field.valueAt + 1 })
  }
  return positions
}

function linesOf (source: string): readonly string[] {
  return source.length > MAX_FRONTMATTER_BYTES ? [] : source.split('\n')
}

function fieldIn (line: string): { readonly name: string, readonly valueAt: number } | undefined {
  const match = FIELD_LINE.exec(line.endsWith('\r') ? line.slice(0, -1) : line)
  if (match === null) return undefined
  const [head, double, single, plain = ''] = match
  return { name: double ?? single ?? plain.trimEnd(), valueAt: head.length }
}

/** The line that holds this byte. */
function lineAt (bytes: Buffer, offset: number): number {
  return bytes.toString('latin1', 0, Math.max(offset, 0)).split('\n').length
}
