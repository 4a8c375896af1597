import { lstatSync, readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { createTwoFilesPatch } from 'diff'
import { type Document, isMap, isScalar, isSeq, type ParsedNode, parseDocument, visit, type YAMLMap } from 'yaml'
import { replaceFile } from '../operator/files.ts'
import { locateFrontmatter } from '../core/format/fences.ts'
import { isValidName, nameAsYaml } from '../core/format/fields.ts'
import { preventsUse } from '../core/format/findings.ts'
import { parseFrontmatter, quotePlainValues } from '../core/format/frontmatter.ts'
import { decodeUtf8 } from '../core/read/decode.ts'
import { MAX_MAIN_FILE_BYTES } from '../core/shared/limits.ts'
import type { Frontmatter } from '../core/shared/skill.ts'
import { printable } from '../core/shared/text.ts'
import { implicitTypeOf } from '../verdicts/rules/portable-yaml.ts'
import type { OpenedSkills } from './validate-skills.ts'

/** One or more byte order marks: after a second one, no reader finds the frontmatter. */
const BYTE_ORDER_MARKS = /^\uFEFF+/

/** A CRLF that follows no other CR: otherwise a second run would find more to fix. */
const LINE_END = /(?<!\r)\r\n/g

/** A frontmatter that could be read. */
interface Fields {
  readonly source: string
  readonly values: Frontmatter
  readonly document: Document.Parsed
  readonly items: YAMLMap.Parsed<ParsedNode, ParsedNode | null>['items']
}

/** Replacement of a part of the source, by its offsets. */
type Edit = readonly [start: number, end: number, text: string]

/** Returns edits that are certain, and the values of the frontmatter after them; undefined if there are none. */
type Fix = (fields: Fields, folder: string) => { edits: readonly Edit[], values: Frontmatter } | undefined

const FIXES: readonly Fix[] = [quoteImplicitTypes, writeName, joinTools]

/** Fixes what is certain in the text of a main file. `left` is the reason if its frontmatter was not changed. Pure. */
export function fixText (text: string, folder: string): { readonly text: string, readonly left?: string } {
  const plain = text.replace(BYTE_ORDER_MARKS, '').replaceAll(LINE_END, '\n')
  const bytes = Buffer.from(plain)
  const location = locateFrontmatter(bytes)
  if (location.kind !== 'found') return { text: plain }
  const { start, end, bodyStart } = location
  const source = bytes.toString('utf8', start, end)
  const { findings } = parseFrontmatter(Buffer.from(source))
  // A field that seems to be missing may be in a part that was not read.
  const left = findings.find((found) => preventsUse(found) && found.code !== 'frontmatter_empty')?.message
  if (left !== undefined) return { text: plain, left }
  const isRepaired = findings.some(({ code }) => code === 'yaml_repaired')
  let fields = readFields(isRepaired ? quotePlainValues(source).text : source)
  if (fields === undefined) return { text: plain }
  for (const fix of FIXES) fields = apply(fix, fields, folder)
  const fence = (from: number, to: number) => bytes.toString('utf8', from, to).replace(/[ \t]+$/m, '')
  return { text: `${fence(0, start)}${fields.source}${fence(end, bodyStart)}${bytes.toString('utf8', bodyStart)}` }
}

/**
 * Fixes the main files of skills. Links and files that are not UTF-8 are left alone: the report says why.
 * @param print receives the patches of a dry run
 * @param warn receives the patch of each file that was fixed, and the name of each whose frontmatter was left as it is
 * @returns whether something was to be fixed
 * @throws ConfigError for a file that cannot be written
 */
export async function fixAll (
  opened: readonly OpenedSkills[], isDryRun: boolean, print: (text: string) => void, warn: (text: string) => void
): Promise<boolean> {
  let isFixed = false
  for (const { skills, names, pathOf } of opened) {
    for (const name of names) {
      const path = (await skills.find(name))?.metadata.path ?? ''
      const before = readText(path)
      if (before === undefined) continue
      const shown = pathOf(path, name)
      const { text: after, left } = fixText(before, name)
      if (left !== undefined) warn(printable(`${shown}: the frontmatter is unchanged: ${left}`))
      if (after === before) continue
      isFixed = true
      const patch = createTwoFilesPatch(shown, shown, before, after).split('\n').slice(2).map(printable).join('\n')
      if (isDryRun) {
        print(patch)
        continue
      }
      await replaceFile(path, after, JSON.stringify(shown))
      warn(`fixed ${printable(shown)}\n${patch.trimEnd()}`)
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

/** Parses a frontmatter; undefined if it is no block mapping, or if one of the two parsers refuses it. */
function readFields (source: string): Fields | undefined {
  const { frontmatter: values, findings } = parseFrontmatter(Buffer.from(source))
  if (findings.some((found) => found.severity === 'error' && found.code !== 'frontmatter_empty')) return undefined
  const document = parseDocument(source, { uniqueKeys: false, logLevel: 'silent' })
  const { contents, errors } = document
  if (errors.length > 0 || (contents !== null && (!isMap(contents) || contents.flow === true))) return undefined
  return { source, values, document, items: contents?.items ?? [] }
}

/** Applies a fix, unless the frontmatter would then read differently from what the fix says. */
function apply (fix: Fix, fields: Fields, folder: string): Fields {
  const { edits = [], values } = fix(fields, folder) ?? {}
  const source = edits.toSorted(([a], [b]) => b - a)
    .reduce((text, [start, end, inserted]) => text.slice(0, start) + inserted + text.slice(end), fields.source)
  const after = values && readFields(source)
  return after !== undefined && isDeepStrictEqual(after.values, values) ? after : fields
}

/** Quotes text that some readers take for a date, a number or a boolean. */
function quoteImplicitTypes ({ document, values }: Fields): ReturnType<Fix> {
  const edits: Edit[] = []
  visit(document, {
    Scalar (_key, { type, value, range }) {
      if (type !== 'PLAIN' || typeof value !== 'string' || !range || implicitTypeOf(value) === undefined) return
      edits.push([range[0], range[1], JSON.stringify(value)])
    }
  })
  return { edits, values }
}

/** Sets `name` to the folder's name, if that is valid. */
function writeName ({ source, values, items }: Fields, folder: string): ReturnType<Fix> {
  if (!isValidName(folder) || values['name'] === folder) return undefined
  const named = { ...values, name: folder }
  const text = nameAsYaml(folder)
  const field = items.find(({ key }) => isScalar(key) && key.value === 'name')
  if (field === undefined) return { edits: [[0, 0, `name: ${text}\n`]], values: named }
  const { value } = field
  if (!isScalar(value) || value.type?.startsWith('BLOCK')) return undefined
  const [start, end] = value.range
  const isEmpty = start === end && source[start - 1] === ':'
  return { edits: [[start, end, isEmpty ? ` ${text}` : text]], values: named }
}

/** Writes `allowed-tools` as one string. Skips lists with comments, or with whitespace in a tool. */
function joinTools ({ source, values, items }: Fields): ReturnType<Fix> {
  const { key, value } = items.find(({ key }) => isScalar(key) && key.value === 'allowed-tools') ?? {}
  if (key === undefined || !isSeq(value) || value.items.length === 0) return undefined
  const tools = value.items.map((item) => isScalar(item) ? item.value : undefined)
  const [start, end] = [key.range[1], value.range[1]]
  const old = source.slice(start, end)
  if (old.includes('#') || !tools.every((tool) => typeof tool === 'string' && /^\S+$/.test(tool))) return undefined
  const text = tools.join(' ')
  const quoted = /^[A-Za-z][\w() -]*$/.test(text) ? text : JSON.stringify(text)
  return {
    edits: [[start, end, `: ${quoted}${old.endsWith('\n') ? '\n' : ''}`]],
    values: { ...values, 'allowed-tools': text }
  }
}
