import { lstatSync, readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { createTwoFilesPatch, structuredPatch } from 'diff'
import { replaceFile, whyUnwritable } from '../config/files/files.ts'
import { locateFrontmatter } from '../core/format/fences.ts'
import { preventsUse } from '../core/format/findings.ts'
import { isPlainScalar, parseFrontmatter } from '../core/format/frontmatter.ts'
import {
  AGENT_FIELDS, isMisspelt, isValidName, KNOWN_FIELDS, misspeltFields, nameAsYaml
} from '../core/format/fields.ts'
import { fieldPositions } from '../core/format/positions.ts'
import { isJsonObject, own } from '../core/shared/json.ts'
import { MAX_MAIN_FILE_BYTES } from '../core/shared/limits.ts'
import type { Frontmatter } from '../core/shared/skill.ts'
import { printable } from '../core/shared/text.ts'
import { decodeUtf8 } from '../core/read/decode.ts'
import { shownPath } from './validate.ts'
import { PathError, type Place, type ReadOptions, withSkills } from './with-skills.ts'

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
  const { findings } = parseFrontmatter(bytes.subarray(location.start, location.end))
  // What a part means that is not read, nobody knows: a field that seems to be missing may stand in it.
  const left = findings.find((found) => preventsUse(found) && found.code !== 'frontmatter_empty')?.message
  if (left !== undefined) return { text: plain, left }
  let fixed = lines
  for (const fix of [quoteValues, renameFields, writeName, joinTools, moveUnknown]) {
    const next = fix(fixed, folder)
    // Each step has to read as before in everything else, without a new error, or it is left out.
    if (next !== undefined && keepsMeaning(read(fixed), read(next), folder) && errorCount(next) <= errorCount(fixed)) {
      fixed = next
    }
  }
  const [head, body] = [bytes.toString('utf8', 0, location.start), bytes.toString('utf8', location.end)]
  return { text: `${head}${fixed.map((line) => `${line}\n`).join('')}${body}` }
}

/** What was done, as lines that steer no terminal. */
interface AllFixes {
  /** A patch for each file that changes. */
  readonly diffs: readonly string[]
  /** A sentence on each place that changes, and on each file whose frontmatter was left as it is. */
  readonly notes: readonly string[]
}

/** Changed lines of one place that are shown; more are counted. */
const MAX_SHOWN_LINES = 6

/**
 * Fixes the main files of all skills of all places. Links and files that are not UTF-8 are left alone.
 * @throws {PathError} for a place that cannot be read, and a file that cannot be written
 */
export async function fixAll (
  places: readonly Place[], options: ReadOptions, cwd: string, isDryRun: boolean
): Promise<AllFixes> {
  const diffs: string[] = []
  const notes: string[] = []
  await withSkills(places, options, async (opened) => {
    for (const { skills, names } of opened) {
      for (const name of names) {
        const path = (await skills.find(name))?.metadata.path
        const before = path === undefined ? undefined : readText(path)
        if (path === undefined || before === undefined) continue
        const shown = shownPath(cwd, path)
        const { text: after, left } = mend(before, name)
        if (left !== undefined) notes.push(printable(`${shown}: the frontmatter is left as it is: ${left}`))
        if (after === before) continue
        notes.push(...changesOf(shown, before, after))
        diffs.push(createTwoFilesPatch(shown, shown, before, after).split('\n').slice(2).map(printable).join('\n'))
        if (!isDryRun) await write(path, shown, after)
      }
    }
  })
  return { diffs, notes }
}

async function write (path: string, shown: string, text: string): Promise<void> {
  try {
    await replaceFile(path, text)
  } catch (error) {
    throw new PathError(`${JSON.stringify(shown)} cannot be written (${whyUnwritable(error)})`)
  }
}

/** `skills/demo/SKILL.md:2: -name: other +name: demo`, for each place that differs. */
function changesOf (shown: string, before: string, after: string): readonly string[] {
  return structuredPatch('', '', before, after, '', '', { context: 0 }).hunks.map(({ newStart, lines }) => {
    const what = lines.length > MAX_SHOWN_LINES ? `${lines.length} changed lines` : lines.join(' ')
    return printable(`fixed ${shown}:${Math.max(newStart, 1)}: ${what}`)
  })
}

/** Undefined for what cannot be read, and for a link: the report says why. */
function readText (path: string): string | undefined {
  try {
    const stats = lstatSync(path)
    return stats.isFile() && stats.size <= MAX_MAIN_FILE_BYTES ? decodeUtf8(readFileSync(path)) : undefined
  } catch {
    return undefined
  }
}

function read (lines: readonly string[]): Frontmatter {
  return parseFrontmatter(Buffer.from(`${lines.join('\n')}\n`)).frontmatter
}

function errorCount (lines: readonly string[]): number {
  return parseFrontmatter(Buffer.from(`${lines.join('\n')}\n`)).findings.filter(preventsUse).length
}

/** Name and tools may change, and fields may get their right name or move into `metadata`: all else has to stay. */
function keepsMeaning (before: Frontmatter, after: Frontmatter, folder: string): boolean {
  const right = misspeltFields(before)
  if (after['name'] !== folder && !isDeepStrictEqual(
    after['name'], before['name']
  ) && ![...right.values()].includes('name')) return false
  const metadata = isJsonObject(after['metadata']) ? after['metadata'] : {}
  return Object.entries(before).every(([field, value]) => {
    const renamed = right.get(field)
    if (renamed !== undefined && !Object.hasOwn(after, field)) return isDeepStrictEqual(after[renamed], value)
    if (field === 'name' || (field === 'allowed-tools' && Array.isArray(value) && after[field] === value.join(' '))) {
      return true
    }
    if (field === 'metadata' && isJsonObject(value)) {
      return Object.entries(value)
        .every(([key, entry]) => isDeepStrictEqual(metadata[key], entry))
    }
    if (Object.hasOwn(after, field)) return isDeepStrictEqual(after[field], value)
    return Object.hasOwn(metadata, field) && (typeof value !== 'string' || metadata[field] === value)
  })
}

/** One-line values that were read although they are not YAML, in quotes. */
function quoteValues (lines: readonly string[]): string[] {
  const values = read(lines)
  return lines.map((line) => line.replace(/^([A-Za-z0-9_-]+):[ \t]+(\S.*)$/, (whole, field: string, value: string) => {
    const text = value.trimEnd()
    return values[field] === text && !isPlainScalar(text) ? `${field}: ${quoteScalar(text)}` : whole
  }))
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
function renameFields (lines: readonly string[]): string[] {
  const renamed = [...lines]
  const positions = fieldPositions(lines.join('\n'))
  for (const [name, field] of misspeltFields(read(lines))) {
    const at = (positions.get(name)?.line ?? 0) - 2
    const line = renamed[at]
    if (line?.startsWith(name)) renamed[at] = `${field}${line.slice(name.length)}`
  }
  return renamed
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

/** `allowed-tools` as one text. Lists with comments or blanks in them are left alone. */
function joinTools (lines: readonly string[]): string[] | undefined {
  const tools = read(lines)['allowed-tools']
  if (!Array.isArray(tools) || tools.length === 0 || !tools.every((tool): tool is string =>
    typeof tool === 'string' && /^\S+$/.test(tool))) return undefined
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
  const [indent = '  '] = block === undefined
    ? []
    : lines.slice(block.start + 1, block.end)
      .flatMap((line) => /^[ \t]+(?=[^\s#])/.exec(line) ?? [])
  const moved: string[] = []
  const rest = lines.filter((line, index) => {
    const [, field = ''] = /^([A-Za-z][\w-]*):[ \t]/.exec(line) ?? []
    const [text, comment] = splitComment(line.slice(field.length + 1))
    if (field === '' || KNOWN_FIELDS.has(field) || AGENT_FIELDS.has(field) || isMisspelt(field)) return true
    if (!MOVABLE.test(text) || /^[ \t]+\S/.test(lines[index + 1] ?? '')) return true
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
