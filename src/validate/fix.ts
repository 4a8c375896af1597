import { lstatSync, readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { createTwoFilesPatch, structuredPatch } from 'diff'
import { replaceFile } from '../config/files/files.ts'
import { locateFrontmatter } from '../core/format/fences.ts'
import {
  AGENT_FIELDS, isMisspelt, isValidName, KNOWN_FIELDS, misspeltFields, nameAsYaml
} from '../core/format/fields.ts'
import { preventsUse } from '../core/format/findings.ts'
import { isPlainScalar, parseFrontmatter } from '../core/format/frontmatter.ts'
import { fieldPositions } from '../core/format/positions.ts'
import { decodeUtf8 } from '../core/read/decode.ts'
import { isJsonObject, own } from '../core/shared/json.ts'
import { MAX_MAIN_FILE_BYTES } from '../core/shared/limits.ts'
import type { Frontmatter } from '../core/shared/skill.ts'
import { printable } from '../core/shared/text.ts'
import type { OpenedSkills } from './validate.ts'

/** Several too: behind the first one, no reader finds the frontmatter. */
const BYTE_ORDER_MARKS = /^\uFEFF+/

/** CRLF, but none behind another CR: without it a second run would find one. */
const LINE_END = /(?<!\r)\r\n/g

/** Values that are all of their line: in quotes, or without a mark at the beginning. */
const MOVABLE = /^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[A-Za-z0-9].*)$/

/** A value in quotes, and the blanks before it. */
const QUOTED = /^[ \t]*(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')/

/** Values of `name` in one line that another one can replace. */
const ONE_LINE_NAME = /^(?:"[^"]*"|'[^']*'|[^#"'|>[{]*)$/

/** Changed lines of one place that are shown; more are counted. */
const MAX_SHOWN_LINES = 6

/** Lines of frontmatter, and what they read as. */
interface Fields {
  readonly lines: readonly string[]
  readonly values: Frontmatter
}

/** A change that is certain, with what the new lines have to read as; undefined where there is nothing to do. */
type Fix = (fields: Fields, folder: string) => Fields | undefined

const FIXES: readonly Fix[] = [quoteValues, renameFields, writeName, joinTools, moveUnknown]

/** A main file after its certain fixes, if there are any, and why its frontmatter was left as it is. Pure. */
export function fixText (text: string, folder: string): { readonly text: string, readonly left?: string } {
  const plain = text.replace(BYTE_ORDER_MARKS, '').replaceAll(LINE_END, '\n')
  const bytes = Buffer.from(plain)
  const location = locateFrontmatter(bytes)
  if (location.kind !== 'found') return { text: plain }
  const { findings } = parseFrontmatter(bytes.subarray(location.start, location.end))
  // What a part means that is not read, nobody knows: a field that seems to be missing may stand in it.
  const left = findings.find((found) => preventsUse(found) && found.code !== 'frontmatter_empty')?.message
  if (left !== undefined) return { text: plain, left }
  let lines: readonly string[] = bytes.toString('utf8', location.start, location.end).split('\n').slice(0, -1)
  for (const fix of FIXES) {
    const before = read(lines)
    const next = fix({ lines, values: before.values }, folder)
    if (next === undefined) continue
    const after = read(next.lines)
    if (isDeepStrictEqual(after.values, next.values) && after.errors <= before.errors) lines = next.lines
  }
  const [head, body] = [bytes.toString('utf8', 0, location.start), bytes.toString('utf8', location.end)]
  return { text: `${head}${lines.map((line) => `${line}\n`).join('')}${body}` }
}

interface FixOptions {
  readonly isDryRun: boolean
  /** Receives the patches of a dry run, as lines that steer no terminal. */
  readonly print: (text: string) => void
  /** Receives a sentence on each place that was fixed, and on each file whose frontmatter was left as it is. */
  readonly warn: (sentence: string) => void
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
      for (const change of changesOf(before, after)) warn(printable(`fixed ${shown}:${change}`))
    }
  }
  return isFixed
}

/** `2: -name: other +name: demo` for each place that differs. */
function changesOf (before: string, after: string): readonly string[] {
  return structuredPatch('', '', before, after, '', '', { context: 0 }).hunks.map(({ newStart, lines }) => {
    const what = lines.length > MAX_SHOWN_LINES ? `${lines.length} changed lines` : lines.join(' ')
    return `${Math.max(newStart, 1)}: ${what}`
  })
}

function readText (path: string): string | undefined {
  try {
    const stats = lstatSync(path)
    return stats.isFile() && stats.size <= MAX_MAIN_FILE_BYTES ? decodeUtf8(readFileSync(path)) : undefined
  } catch {
    return undefined
  }
}

function read (lines: readonly string[]): { readonly values: Frontmatter, readonly errors: number } {
  const { frontmatter, findings } = parseFrontmatter(Buffer.from(lines.map((line) => `${line}\n`).join('')))
  return { values: frontmatter, errors: findings.filter(preventsUse).length }
}

/** One-line values that were read although they are not YAML, in quotes. */
function quoteValues ({ lines, values }: Fields): Fields {
  const quoted = lines.map((line) =>
    line.replace(/^([A-Za-z0-9_-]+):[ \t]+(\S.*)$/, (whole, field: string, value: string) => {
      const text = value.trimEnd()
      return values[field] === text && !isPlainScalar(text) ? `${field}: ${quoteScalar(text)}` : whole
    }))
  return { lines: quoted, values }
}

/** What stands behind the colon of a field: its value, and a comment with the blanks before. */
function splitComment (text: string): readonly [value: string, comment: string] {
  const start = QUOTED.exec(text)?.[0].length ?? 0
  const blank = text.slice(start).search(/[ \t]#/)
  if (blank === -1) return [text.trim(), '']
  const value = text.slice(0, start + blank).trimEnd()
  return [value.trimStart(), text.slice(value.length)]
}

/** YAML refuses the control characters that JSON leaves as they are. */
function quoteScalar (text: string): string {
  return JSON.stringify(text).replaceAll(/[\x7f-\x9f]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`)
}

/** Fields of the format that are misspelt, or written in another case, by their right names. */
function renameFields ({ lines, values }: Fields): Fields {
  const right = misspeltFields(values)
  const renamed = lines.map((line) => {
    const [name = ''] = /^[^:]*/.exec(line) ?? []
    const field = right.get(name)
    return field === undefined ? line : `${field}${line.slice(name.length)}`
  })
  const entries = Object.entries(values).map(([name, value]) => [right.get(name) ?? name, value])
  return { lines: renamed, values: Object.fromEntries(entries) }
}

/** The folder's name, where it is a valid one. */
function writeName ({ lines, values }: Fields, folder: string): Fields | undefined {
  if (!isValidName(folder) || values['name'] === folder) return undefined
  const named = { ...values, name: folder }
  const value = nameAsYaml(folder)
  const position = fieldPositions(lines.join('\n')).get('name')
  if (position === undefined) return { lines: [`name: ${value}`, ...lines], values: named }
  const at = position.line - 2
  const line = lines[at] ?? ''
  const [head = ''] = /^["']?name["']?[ \t]*:/.exec(line) ?? []
  const [old, comment] = splitComment(line.slice(head.length))
  return ONE_LINE_NAME.test(old) ? { lines: lines.with(at, `${head} ${value}${comment}`), values: named } : undefined
}

/** `allowed-tools` as one text. Lists with comments or blanks in them are left alone. */
function joinTools ({ lines, values }: Fields): Fields | undefined {
  const tools = values['allowed-tools']
  const block = blockOf(lines, 'allowed-tools')
  if (block === undefined || !Array.isArray(tools) || tools.length === 0) return undefined
  const arePlain = tools.every((tool) => typeof tool === 'string' && /^\S+$/.test(tool))
  if (!arePlain || lines.slice(block.start, block.end).some((line) => line.includes('#'))) return undefined
  const text = tools.join(' ')
  const value = /^[A-Za-z][\w() -]*$/.test(text) ? text : JSON.stringify(text)
  return {
    lines: lines.toSpliced(block.start, block.end - block.start, `allowed-tools: ${value}`),
    values: { ...values, 'allowed-tools': text }
  }
}

/** One-line fields that nobody reads, as text in `metadata`. */
function moveUnknown ({ lines, values }: Fields): Fields | undefined {
  const metadata = isJsonObject(values['metadata']) ? values['metadata'] : {}
  const moved = new Map<string, unknown>()
  const movedLines: string[] = []
  const rest = lines.filter((line, index) => {
    const [, field = ''] = /^([A-Za-z][\w-]*):[ \t]/.exec(line) ?? []
    const [text, comment] = splitComment(line.slice(field.length + 1))
    const value = own(values, field)
    const isKnown = field === '' || KNOWN_FIELDS.has(field) || AGENT_FIELDS.has(field) || isMisspelt(field)
    const isOneLine = MOVABLE.test(text) && !/^[ \t]+\S/.test(lines[index + 1] ?? '')
    // A value that is not there says nothing, and as a text it would.
    const isNothing = value === undefined || value === null
    if (isKnown || !isOneLine || isNothing || Object.hasOwn(metadata, field)) return true
    moved.set(field, typeof value === 'string' ? value : text)
    movedLines.push(`${field}: ${/^["']/.test(text) ? text : quoteScalar(text)}${comment}`)
    return false
  })
  if (moved.size === 0) return undefined
  const others = Object.entries(values).filter(([field]) => !moved.has(field))
  const block = blockOf(rest, 'metadata')
  const entry = rest.slice(block?.start ?? 0, block?.end ?? 0).find((line) => /^[ \t]+[^\s#]/.test(line))
  const indent = /^[ \t]+/.exec(entry ?? '')?.[0] ?? '  '
  const end = block?.end ?? rest.length
  const added = [...block === undefined ? ['metadata:'] : [], ...movedLines.map((line) => `${indent}${line}`)]
  return {
    lines: rest.toSpliced(end, 0, ...added),
    values: { ...Object.fromEntries(others), metadata: { ...metadata, ...Object.fromEntries(moved) } }
  }
}

/** The lines of a top-level field: its own, and those below that are indented or items of its list. */
function blockOf (
  lines: readonly string[], field: string
): { readonly start: number, readonly end: number } | undefined {
  const position = fieldPositions(lines.join('\n')).get(field)
  if (position === undefined) return undefined
  const start = position.line - 2
  let end = start + 1
  for (let at = end; at < lines.length; at++) {
    const line = lines[at] ?? ''
    if (/^(?:[ \t]+\S|-[ \t])/.test(line)) end = at + 1
    // A blank line is inside when more of the field follows.
    else if (line.trim() !== '') break
  }
  return { start, end }
}
