import { randomUUID } from 'node:crypto'
import { chmodSync, chownSync, lstatSync, readFileSync, renameSync, rmSync, type Stats, writeFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { locateFrontmatter } from '../core/format/fences.ts'
import { preventsUse } from '../core/format/findings.ts'
import { parseFrontmatter } from '../core/format/frontmatter.ts'
import { AGENT_FIELDS, isValidName, KNOWN_FIELDS, nameAsYaml } from '../core/format/fields.ts'
import { fieldPositions } from '../core/format/positions.ts'
import { isPlainScalar } from '../core/format/yaml.ts'
import { isJsonObject, own } from '../core/shared/json.ts'
import { MAX_MAIN_FILE_BYTES } from '../core/shared/limits.ts'
import type { Frontmatter } from '../core/shared/skill.ts'
import { decodeUtf8 } from '../core/read/decode.ts'

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

interface Mended {
  readonly text: string
  /** Why the frontmatter was left as it is. */
  readonly left?: string | undefined
}

/** A main file after its certain fixes; the same text when there is nothing to do. Pure. */
export function mend (text: string, folder: string): Mended {
  const plain = text.replace(BYTE_ORDER_MARKS, '').replaceAll(LINE_END, '\n')
  const bytes = Buffer.from(plain)
  const location = locateFrontmatter(bytes)
  if (location.kind !== 'found') return { text: plain }
  const lines = bytes.toString('utf8', location.start, location.end).split('\n').slice(0, -1)
  const { frontmatter: before, findings } = parseFrontmatter(bytes.subarray(location.start, location.end))
  // What a part means that is not read, nobody knows: a field that seems to be missing may stand in it.
  const left = findings.find((found) => preventsUse(found) && found.code !== 'frontmatter_empty')?.message
  if (left !== undefined) return { text: plain, left }
  let fixed = lines
  for (const fix of [quoteValues, writeName, joinTools, moveUnknown]) {
    const next = fix(fixed, folder)
    // Each step has to read as before in everything else, without a new error, or it is left out.
    if (next !== undefined && keepsMeaning(before, read(next), folder) && errorCount(next) <= errorCount(fixed)) fixed = next
  }
  return { text: `${bytes.toString('utf8', 0, location.start)}${fixed.map((line) => `${line}\n`).join('')}${bytes.toString('utf8', location.end)}` }
}

/** What is reported of one file. */
interface FixedFile {
  readonly before: string
  readonly after: string
  /** Why the frontmatter was left as it is; undefined where it was read. */
  readonly left: string | undefined
}

/**
 * Mends a main file on the disk, by a new file in its place. Links and files that are not UTF-8 are left alone.
 * @returns undefined when there is nothing to do, and nothing to say
 * @throws {Error} the disk's, when the new file cannot be written
 */
export function fixFile (path: string, folder: string, isDryRun: boolean): FixedFile | undefined {
  const found = readText(path)
  if (found === undefined) return undefined
  const { text: before, stats } = found
  const { text: after, left } = mend(before, folder)
  if (after === before && left === undefined) return undefined
  if (!isDryRun && after !== before) {
    const temporary = `${path}.${randomUUID()}`
    try {
      writeFileSync(temporary, after, { mode: stats.mode, flag: 'wx' })
      restoreOwner(temporary, stats)
      renameSync(temporary, path)
    } catch (error) {
      rmSync(temporary, { force: true })
      throw error
    }
  }
  return { before, after, left }
}

/** Undefined for what cannot be read as well: the report says why. */
function readText (path: string): { readonly text: string, readonly stats: Stats } | undefined {
  try {
    const stats = lstatSync(path)
    const text = stats.isFile() && stats.size <= MAX_MAIN_FILE_BYTES ? decodeUtf8(readFileSync(path)) : undefined
    return text === undefined ? undefined : { text, stats }
  } catch {
    return undefined
  }
}

/** A new file has the owner of the process, and not the modes that its mask takes away. */
function restoreOwner (path: string, { mode, uid, gid }: Stats): void {
  try {
    chownSync(path, uid, gid)
  } catch {
    // Only root may give a file away: it stays with whoever mends it.
  }
  chmodSync(path, mode)
}

function read (lines: readonly string[]): Frontmatter {
  return parseFrontmatter(Buffer.from(`${lines.join('\n')}\n`)).frontmatter
}

function errorCount (lines: readonly string[]): number {
  return parseFrontmatter(Buffer.from(`${lines.join('\n')}\n`)).findings.filter(preventsUse).length
}

/** Name and tools may change, and fields may move into `metadata`: all else has to stay. */
function keepsMeaning (before: Frontmatter, after: Frontmatter, folder: string): boolean {
  if (after['name'] !== folder && !isDeepStrictEqual(after['name'], before['name'])) return false
  const metadata = isJsonObject(after['metadata']) ? after['metadata'] : {}
  return Object.entries(before).every(([field, value]) => {
    if (field === 'name' || (field === 'allowed-tools' && Array.isArray(value) && after[field] === value.join(' '))) return true
    if (field === 'metadata' && isJsonObject(value)) return Object.entries(value).every(([key, entry]) => isDeepStrictEqual(metadata[key], entry))
    if (Object.hasOwn(after, field)) return isDeepStrictEqual(after[field], value)
    return Object.hasOwn(metadata, field) && (typeof value !== 'string' || metadata[field] === value)
  })
}

/** One-line values that were read although they are no YAML, in quotes. */
function quoteValues (lines: readonly string[]): string[] {
  const values = read(lines)
  return lines.map((line) => line.replace(/^([A-Za-z0-9_-]+):[ \t]+(\S.*)$/, (whole, field: string, value: string) => {
    const text = value.trimEnd()
    return values[field] === text && !isPlainScalar(text) ? `${field}: ${quoteScalar(text)}` : whole
  }))
}

/** What stands behind the colon of a field: its value, and a comment with the blanks before. The time is linear in the length. */
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

/** The folder's name, where it is a valid one. */
function writeName (lines: readonly string[], folder: string): string[] | undefined {
  if (!isValidName(folder) || read(lines)['name'] === folder) return undefined
  const value = nameAsYaml(folder)
  const position = fieldPositions(lines.join('\n')).get('name')
  if (position === undefined) return [`name: ${value}`, ...lines]
  const at = position.line - 2
  const line = lines[at] ?? ''
  const [head = ''] = /^["']?name["']?[ \t]*:/.exec(line) ?? []
  const [old, comment] = splitComment(line.slice(head.length))
  return ONE_LINE_NAME.test(old) ? lines.with(at, `${head} ${value}${comment}`) : undefined
}

/** `allowed-tools` as one text. A list with comments in it is left alone, and one of tools with blanks: each reader parts these otherwise. */
function joinTools (lines: readonly string[]): string[] | undefined {
  const tools = read(lines)['allowed-tools']
  if (!Array.isArray(tools) || tools.length === 0 || !tools.every((tool): tool is string => typeof tool === 'string' && /^\S+$/.test(tool))) return undefined
  const block = blockOf(lines, 'allowed-tools')
  if (block === undefined || lines.slice(block.start, block.end).some((line) => line.includes('#'))) return undefined
  const text = tools.join(' ')
  const value = /^[A-Za-z][\w() -]*$/.test(text) ? text : JSON.stringify(text)
  return lines.toSpliced(block.start, block.end - block.start, `allowed-tools: ${value}`)
}

/** One-line fields that nobody reads, as text in `metadata`. */
function moveUnknown (lines: readonly string[]): string[] | undefined {
  const values = read(lines)
  const { metadata } = values
  const block = blockOf(lines, 'metadata')
  const [indent = '  '] = block === undefined ? [] : lines.slice(block.start + 1, block.end).flatMap((line) => /^[ \t]+(?=[^\s#])/.exec(line) ?? [])
  const moved: string[] = []
  const rest = lines.filter((line, index) => {
    const [, field = ''] = /^([A-Za-z][\w-]*):[ \t]/.exec(line) ?? []
    const [text, comment] = splitComment(line.slice(field.length + 1))
    if (field === '' || KNOWN_FIELDS.has(field) || AGENT_FIELDS.has(field) || !MOVABLE.test(text) || /^[ \t]+\S/.test(lines[index + 1] ?? '')) return true
    // A value that is not there says nothing, and as a text it would.
    if ((own(values, field) ?? null) === null || (isJsonObject(metadata) && Object.hasOwn(metadata, field))) return true
    moved.push(`${indent}${field}: ${/^["']/.test(text) ? text : quoteScalar(text)}${comment}`)
    return false
  })
  if (moved.length === 0) return undefined
  const after = blockOf(rest, 'metadata')
  if (after === undefined) return [...rest, 'metadata:', ...moved]
  return rest.toSpliced(after.end, 0, ...moved)
}

/** The lines of a top-level field: its own, and those below that are indented or items of its list. */
function blockOf (lines: readonly string[], field: string): { readonly start: number, readonly end: number } | undefined {
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

/** The changed lines of a file, between what both have in common. */
export function diffOf (path: string, { before, after }: Pick<FixedFile, 'before' | 'after'>): string {
  const old = before.split('\n')
  const now = after.split('\n')
  let head = 0
  while (head < old.length && old[head] === now[head]) head++
  let tail = 0
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++
  const removed = old.slice(head, old.length - tail)
  const added = now.slice(head, now.length - tail)
  // Of no lines, the range names the line before.
  const rangeOf = ({ length }: readonly string[]) => `${length === 0 ? head : head + 1},${length}`
  const range = `@@ -${rangeOf(removed)} +${rangeOf(added)} @@`
  return `--- ${path}\n+++ ${path}\n${range}\n${[...removed.map((line) => `-${line}`), ...added.map((line) => `+${line}`)].join('\n')}\n`
}
