import { KNOWN_FIELDS, keysWithoutText } from './fields.ts'
import { isMapping } from './yaml.ts'
import type { Place } from './findings.ts'
import type { FrontmatterLocation } from './frontmatter.ts'
import type { Finding, Frontmatter } from '../ground/skill.ts'

const FIRST: Place = { line: 1, column: 1 }

/** A top-level field at the start of its line: its name, in quotes or not, and what stands before its value. */
const FIELD_LINE = /^(?:"([^"\\]*)"|'([^']*)'|([^\s#"'[\]{},&*!|>%@`-][^:]*?))[ \t]*:(?:[ \t]+|$)/

/** An entry of a mapping inside a field: its indentation, and its name without quotes. */
const ENTRY_LINE = /^([ \t]+)["']?([^\s"':#][^"':]*)["']?[ \t]*:/

/**
 * Adds line and column to findings that have none: those of the field that a finding is about, else those of the first line.
 * Consumers: editors and code scanning. Costs nothing for a file without findings.
 * @param bytes the whole main file
 */
export function placeFindings (findings: readonly Finding[], bytes: Buffer, location: FrontmatterLocation, frontmatter: Frontmatter): readonly Finding[] {
  if (findings.every(({ line }) => line !== undefined)) return findings
  const source = location.kind === 'found' ? bytes.toString('utf8', location.start, location.end) : ''
  const fields = fieldPlaces(source)
  return findings.map((found) => {
    if (found.line !== undefined) return found
    const place = found.code === 'metadata_not_text' ? placeOfEntry(source, fields, frontmatter) : undefined
    return { ...found, ...place ?? placeOf(found, fields, bytes, location) }
  })
}

/** Where the first entry of `metadata` is whose value is not text. */
function placeOfEntry (source: string, fields: ReadonlyMap<string, Place>, frontmatter: Frontmatter): Place | undefined {
  const start = fields.get('metadata')?.line
  const metadata = frontmatter['metadata']
  const [key] = isMapping(metadata) ? keysWithoutText(metadata) : []
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
export function fieldPlaces (source: string): Map<string, Place> {
  const places = new Map<string, Place>()
  for (const [index, text] of source.split('\n').entries()) {
    const match = FIELD_LINE.exec(text.replace(/\r$/, ''))
    if (match === null) continue
    const [head, double, single, plain] = match
    const name = double ?? single ?? plain ?? ''
    const hasValue = text.slice(head.length).trim() !== ''
    // The opening fence is the first line.
    if (!places.has(name)) places.set(name, { line: index + 2, column: hasValue ? head.length + 1 : 1 })
  }
  return places
}

function placeOf ({ code, field }: Finding, fields: ReadonlyMap<string, Place>, bytes: Buffer, location: FrontmatterLocation): Place {
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
