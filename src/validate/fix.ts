import { lstatSync, readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { createTwoFilesPatch, structuredPatch } from 'diff'
import { isMap, isScalar, isSeq, type ParsedNode, parseDocument, type Scalar, visit } from 'yaml'
import { replaceFile } from '../operator/files.ts'
import { locateFrontmatter } from '../core/format/fences.ts'
import {
  AGENT_FIELDS, isMisspelt, isValidName, KNOWN_FIELDS, misspeltFields, nameAsYaml
} from '../core/format/fields.ts'
import { preventsUse } from '../core/format/findings.ts'
import { parseFrontmatter, quotePlainValues } from '../core/format/frontmatter.ts'
import { decodeUtf8 } from '../core/read/decode.ts'
import { isJsonObject } from '../core/shared/json.ts'
import { MAX_MAIN_FILE_BYTES } from '../core/shared/limits.ts'
import type { Frontmatter } from '../core/shared/skill.ts'
import { printable } from '../core/shared/text.ts'
import { implicitTypeOf } from '../verdicts/rules/portable-yaml.ts'
import type { OpenedSkills } from './validate.ts'

/** Several too: behind the first one, no reader finds the frontmatter. */
const BYTE_ORDER_MARKS = /^\uFEFF+/

/** CRLF, but none behind another CR: without it a second run would find one. */
const LINE_END = /(?<!\r)\r\n/g

/** Lines of one place that are shown: other line ends change the whole file. */
const MAX_SHOWN_LINES = 40

/** A field of the frontmatter, where it stands. */
interface Field {
  readonly name: string
  readonly key: Scalar.Parsed
  readonly value: ParsedNode | null
}

/** A frontmatter that could be read. */
interface Fields {
  readonly source: string
  readonly values: Frontmatter
  /** None for an empty one. */
  readonly fields: readonly Field[]
}

/** A part of the source that is replaced, by its offsets. */
interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Edits that are certain, with what the result has to read as; undefined where there is nothing to do. */
type Fix = (fields: Fields, folder: string) => { edits: readonly Edit[], values: Frontmatter } | undefined

const FIXES: readonly Fix[] = [quoteImplicitTypes, renameFields, writeName, joinTools, moveUnknown]

/** A main file after its certain fixes, if there are any, and why its frontmatter was left as it is. Pure. */
export function fixText (text: string, folder: string): { readonly text: string, readonly left?: string } {
  const plain = text.replace(BYTE_ORDER_MARKS, '').replaceAll(LINE_END, '\n')
  const bytes = Buffer.from(plain)
  const location = locateFrontmatter(bytes)
  if (location.kind !== 'found') return { text: plain }
  const { start, end, bodyStart } = location
  const source = bytes.toString('utf8', start, end)
  const { findings } = parseFrontmatter(Buffer.from(source))
  // What a part means that is not read, nobody knows: a field that seems to be missing may stand in it.
  const left = findings.find((found) => preventsUse(found) && found.code !== 'frontmatter_empty')?.message
  if (left !== undefined) return { text: plain, left }
  const isRepaired = findings.some(({ code }) => code === 'yaml_repaired')
  let fields = readFields(isRepaired ? quotePlainValues(source).text : source)
  if (fields === undefined) return { text: plain }
  for (const fix of FIXES) fields = apply(fix, fields, folder)
  const [opening, closing] = [[0, start], [end, bodyStart]].map(([from, to]) =>
    bytes.toString('utf8', from, to).replace(/[ \t]+$/m, ''))
  return { text: `${opening}${fields.source}${closing}${bytes.toString('utf8', bodyStart)}` }
}

interface FixOptions {
  readonly isDryRun: boolean
  /** Receives the patches of a dry run, as lines that steer no terminal. */
  readonly print: (text: string) => void
  /** Receives each place that was fixed, with its lines, and each file whose frontmatter was left as it is. */
  readonly warn: (text: string) => void
}

/**
 * Fixes the main files of skills. Links and files that are not UTF-8 are left alone: the report says why.
 * @returns whether something was to be fixed
 * @throws ConfigError for a file that cannot be written
 */
export async function fixAll (
  opened: readonly OpenedSkills[], { isDryRun, print, warn }: FixOptions
): Promise<boolean> {
  let isFixed = false
  for (const { skills, names, pathOf } of opened) {
    for (const name of names) {
      const path = (await skills.find(name))?.metadata.path ?? ''
      const before = readText(path)
      if (before === undefined) continue
      const shown = pathOf(path, name)
      const { text: after, left } = fixText(before, name)
      if (left !== undefined) warn(printable(`${shown}: the frontmatter is left as it is: ${left}`))
      if (after === before) continue
      isFixed = true
      if (isDryRun) {
        print(createTwoFilesPatch(shown, shown, before, after).split('\n').slice(2).map(printable).join('\n'))
        continue
      }
      await replaceFile(path, after, JSON.stringify(shown))
      for (const { newStart, lines } of structuredPatch('', '', before, after, '', '', { context: 0 }).hunks) {
        const more = lines.length > MAX_SHOWN_LINES ? [`and ${lines.length - MAX_SHOWN_LINES} more lines`] : []
        const shownLines = [`fixed ${shown}:${Math.max(newStart, 1)}`, ...lines.slice(0, MAX_SHOWN_LINES), ...more]
        warn(shownLines.map(printable).join('\n'))
      }
    }
  }
  return isFixed
}

function readText (path: string): string | undefined {
  try {
    const stats = lstatSync(path)
    return stats.isFile() && stats.size <= MAX_MAIN_FILE_BYTES ? decodeUtf8(readFileSync(path)) : undefined
  } catch {
    return undefined
  }
}

/** Undefined for what is no mapping of lines, and for what one of the two parsers refuses. */
function readFields (source: string): Fields | undefined {
  const { frontmatter: values, findings } = parseFrontmatter(Buffer.from(source))
  if (findings.some((found) => found.severity === 'error' && found.code !== 'frontmatter_empty')) return undefined
  const { contents, errors } = parseDocument(source, { uniqueKeys: false, logLevel: 'silent' })
  if (errors.length > 0) return undefined
  if (contents === null) return { source, values, fields: [] }
  if (!isMap(contents) || contents.flow === true) return undefined
  const fields = contents.items.flatMap(({ key, value }) =>
    isScalar(key) && typeof key.value === 'string' ? { name: key.value, key, value } : [])
  return { source, values, fields }
}

/** A frontmatter after a fix; as it was, if it would not read as it has to. */
function apply (fix: Fix, fields: Fields, folder: string): Fields {
  const { edits = [], values } = fix(fields, folder) ?? {}
  const source = edits.toSorted((a, b) => b.start - a.start)
    .reduce((text, { start, end, text: inserted }) => text.slice(0, start) + inserted + text.slice(end), fields.source)
  const after = values && readFields(source)
  return after !== undefined && isDeepStrictEqual(after.values, values) ? after : fields
}

/** Text that some readers take for a date, a number or a truth value, in quotes. */
function quoteImplicitTypes ({ source, values }: Fields): ReturnType<Fix> {
  const edits: Edit[] = []
  visit(parseDocument(source, { uniqueKeys: false, logLevel: 'silent' }), {
    Scalar (_key, { type, value, range }) {
      if (type !== 'PLAIN' || typeof value !== 'string' || !range || implicitTypeOf(value) === undefined) return
      edits.push({ start: range[0], end: range[1], text: JSON.stringify(value) })
    }
  })
  return { edits, values }
}

/** Fields of the format that are misspelt, or written in another case, by their right names. */
function renameFields ({ values, fields }: Fields): ReturnType<Fix> {
  const right = misspeltFields(values)
  const edits = fields.flatMap(({ name, key: { range: [start, end] } }) => {
    const text = right.get(name)
    return text === undefined ? [] : [{ start, end, text }]
  })
  const entries = Object.entries(values).map(([name, value]) => [right.get(name) ?? name, value])
  return { edits, values: Object.fromEntries(entries) }
}

/** The folder's name, where it is a valid one. */
function writeName ({ source, values, fields }: Fields, folder: string): ReturnType<Fix> {
  if (!isValidName(folder) || values['name'] === folder) return undefined
  const named = { ...values, name: folder }
  const text = nameAsYaml(folder)
  const field = fields.find(({ name }) => name === 'name')
  if (field === undefined) return { edits: [{ start: 0, end: 0, text: `name: ${text}\n` }], values: named }
  const { value } = field
  if (!isScalar(value) || value.type?.startsWith('BLOCK')) return undefined
  const [start, end] = value.range
  const isEmpty = start === end && source[start - 1] === ':'
  return { edits: [{ start, end, text: isEmpty ? ` ${text}` : text }], values: named }
}

/** `allowed-tools` as one text. Lists with comments or blanks in them are left alone. */
function joinTools ({ source, values, fields }: Fields): ReturnType<Fix> {
  const { key, value } = fields.find(({ name }) => name === 'allowed-tools') ?? {}
  if (key === undefined || !isSeq(value) || value.items.length === 0) return undefined
  const tools = value.items.map((item) => isScalar(item) ? item.value : undefined)
  const [start, end] = [key.range[1], value.range[1]]
  const old = source.slice(start, end)
  if (old.includes('#') || !tools.every((tool) => typeof tool === 'string' && /^\S+$/.test(tool))) return undefined
  const text = tools.join(' ')
  const quoted = /^[A-Za-z][\w() -]*$/.test(text) ? text : JSON.stringify(text)
  return {
    edits: [{ start, end, text: `: ${quoted}${old.endsWith('\n') ? '\n' : ''}` }],
    values: { ...values, 'allowed-tools': text }
  }
}

/** One-line fields that nobody reads, as text in `metadata`. */
function moveUnknown (all: Fields): ReturnType<Fix> {
  const { source, values, fields } = all
  const metadata = isJsonObject(values['metadata']) ? values['metadata'] : {}
  const place = placeInMetadata(all)
  if (place === undefined) return undefined
  const moved = new Map<string, string>()
  const edits: Edit[] = []
  let added = place.head
  for (const { name, key, value } of fields) {
    const isRead = KNOWN_FIELDS.has(name) || AGENT_FIELDS.has(name) || isMisspelt(name) || Object.hasOwn(metadata, name)
    if (isRead || !isScalar(value) || value.value === null || value.anchor !== undefined || value.tag) continue
    const [start, [valueStart, valueEnd]] = [key.range[0], value.range]
    const end = source.indexOf('\n', valueEnd) + 1
    const isOneLine = /(?:^|\n)$/.test(source.slice(0, start)) && !source.slice(start, valueEnd).includes('\n') &&
      !/^[ \t]+\S/.test(source.slice(end))
    if (!isOneLine || end === 0 || key.type !== 'PLAIN') continue
    const written = source.slice(valueStart, valueEnd)
    moved.set(name, typeof value.value === 'string' ? value.value : written)
    const text = value.type === 'PLAIN' ? JSON.stringify(written) : written
    added += `${place.indent}${name}: ${text}${source.slice(valueEnd, end).trimEnd()}\n`
    edits.push({ start, end, text: '' })
  }
  if (moved.size === 0) return undefined
  const others = Object.entries(values).filter(([name]) => !moved.has(name))
  return {
    edits: [...edits, { start: place.offset, end: place.offset, text: added }],
    values: { ...Object.fromEntries(others), metadata: { ...metadata, ...Object.fromEntries(moved) } }
  }
}

/** Where another entry of `metadata` goes, with what stands before it in its line. */
function placeInMetadata ({ source, fields }: Fields): { offset: number, head: string, indent: string } | undefined {
  const { key, value } = fields.find(({ name }) => name === 'metadata') ?? {}
  if (key === undefined) return { offset: source.length, head: 'metadata:\n', indent: '  ' }
  if (isScalar(value) && value.value === null) {
    return { offset: source.indexOf('\n', value.range[1]) + 1, head: '', indent: '  ' }
  }
  const first = isMap(value) && value.flow !== true ? value.items[0]?.key.range?.[0] : undefined
  if (value == null || first === undefined) return undefined
  return { offset: value.range[1], head: '', indent: source.slice(source.lastIndexOf('\n', first) + 1, first) }
}
