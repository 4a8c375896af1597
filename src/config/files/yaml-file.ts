import type { Static, TSchema } from '@sinclair/typebox'
import { Ajv, type ErrorObject } from 'ajv'
import { EVENT_ID, type Event, getScalarValue, load, parseEvents, YAMLException } from 'js-yaml'
import { maskSecrets } from '../../core/shared/text.ts'
import { readRegularFile, whyUnreadable } from './files.ts'
import { ConfigError, didYouMean, quote } from '../setting.ts'

/** Where a value is in a document: keys of mappings, positions in lists. */
export type YamlPath = ReadonlyArray<string | number>

/** A file of an operator's, read and checked against its schema. */
export interface YamlFile<Value> {
  readonly path: string
  readonly value: Value
  /** The line of a key or an item, counted from 1; of something that is not there, the line of what should hold it. */
  lineOf (path: YamlPath): number
  /** `FILE:LINE: KEY sentence`, for what a schema cannot say. */
  error (path: YamlPath, sentence: string): ConfigError
}

const MAX_DEPTH = 32

/** Errors of a file; only the first is reported. */
const MAX_COMPLAINTS = 1_000

const EMPTY = 'the file is empty'
const MISSING = 'is missing'

/** What YAML allows and this file does not, by the beginning of the parser's reason. */
const REFUSED = [
  ['aliases exceeded', 'a value that stands for another one (*name) is not taken: write that value out'],
  ['nesting exceeded', `values are nested more than ${MAX_DEPTH} deep`],
  ['expected a document', EMPTY]
] as const

/**
 * Reads a YAML file that an operator has written. Keys that the schema does not name are refused.
 * @throws ConfigError of one line, `FILE:LINE: KEY …`
 */
export async function readYamlFile<Schema extends TSchema> (
  path: string, schema: Schema
): Promise<YamlFile<Static<Schema>>> {
  return parseYamlFile(path, await readTextFile(path), schema)
}

/** A file is not there, or cannot be read. */
export class UnreadableError extends ConfigError {}

/**
 * What is read of the file that a setting names: an error about the file begins with the setting.
 * @param setting `PORT or --port`
 * @param remedy what is said at the end of a file that is not there
 */
export async function readSetting<T> (setting: string, reading: Promise<T>, remedy = ''): Promise<T> {
  try {
    return await reading
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error
    throw new ConfigError(`${setting}: ${error.message}${remedy}`, { cause: error })
  }
}

/** @throws ConfigError when the file cannot be read as text */
export async function readTextFile (path: string): Promise<string> {
  let bytes: Buffer
  try {
    bytes = await readRegularFile(path)
  } catch (error) {
    throw new UnreadableError(`${path} cannot be read: ${whyUnreadable(error)}`, { cause: error })
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new ConfigError(`${path} is not UTF-8 text`, { cause: error })
  }
}

/** One for all: each schema is compiled once, and a file may be read again after each of its changes. */
const ajv = new Ajv({ allErrors: true, verbose: true, strict: false, validateSchema: false, addUsedSchema: false })

/**
 * Parses and checks the text of a YAML file.
 * @param path names the text in errors
 */
export function parseYamlFile<Schema extends TSchema> (
  path: string, text: string, schema: Schema
): YamlFile<Static<Schema>> {
  // A sentence names keys, and a key may be a token that was pasted in the wrong place.
  const fail = (line: number, sentence: string) => new ConfigError(`${path}:${line}: ${maskSecrets(sentence)}`)
  // A file is empty for a moment while it is written.
  if (text.trim() === '') throw fail(1, EMPTY)
  const value = parse(text, fail)
  let lines: ReadonlyMap<string, number> | undefined
  const file = {
    path,
    lineOf: (at: YamlPath): number => {
      lines ??= linesByPath(text)
      return lines.get(keyOf(at)) ?? (at.length === 0 ? 1 : file.lineOf(at.slice(0, -1)))
    },
    error: (at: YamlPath, sentence: string) => fail(file.lineOf(at), `${nameOf(at)} ${sentence}`.trimStart())
  }
  const validate = ajv.compile<Static<Schema>>(schema)
  if (validate(value)) return { ...file, value }
  const complaints = (validate.errors ?? []).slice(0, MAX_COMPLAINTS).map((error) => {
    const { at, sentence } = complaintOf(error, value)
    return { at, sentence, line: file.lineOf(at) }
  })
  // The reader begins at the top. A mistyped key explains the one that is missing.
  const rank = ({ sentence }: { readonly sentence: string }): number => Number(sentence === MISSING)
  const [first] = complaints.sort((a, b) => a.line - b.line || rank(a) - rank(b))
  throw first === undefined ? fail(1, 'the file does not fit its schema') : file.error(first.at, first.sentence)
}

function parse (text: string, fail: (line: number, sentence: string) => ConfigError): unknown {
  try {
    return load(text, { maxDepth: MAX_DEPTH, maxAliases: 0 })
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    // Without the cause, which quotes the lines around: they may hold secrets.
    const [, sentence] = REFUSED.find(([reason]) => error.reason.startsWith(reason)) ?? []
    throw fail((error.mark?.line ?? 0) + 1, sentence ?? `not valid YAML: ${error.reason}`)
  }
}

/** Lines by path of everything in the document: of a key where it has one, else of the value. */
function linesByPath (text: string): ReadonlyMap<string, number> {
  const lines = new Map<string, number>()
  const events = parseEvents(text, { maxDepth: MAX_DEPTH })
  let next = 0
  let offset = 0
  let line = 1

  /** Positions are asked for in ascending order. */
  function lineAt (position: number): number {
    for (; offset < position; offset++) if (text[offset] === '\n') line++
    return line
  }

  function put (path: YamlPath, event: Event): void {
    const key = keyOf(path)
    if (!lines.has(key)) lines.set(key, lineAt(startOf(event)))
  }

  function walk (path: YamlPath): void {
    const event = events[next++]
    if (event === undefined) return
    put(path, event)
    if (event.type === EVENT_ID.DOCUMENT) {
      walk(path)
    } else if (event.type === EVENT_ID.SEQUENCE) {
      for (let index = 0; events[next]?.type !== EVENT_ID.POP && next < events.length; index++) walk([...path, index])
    } else if (event.type === EVENT_ID.MAPPING) {
      while (events[next]?.type !== EVENT_ID.POP && next < events.length) {
        const key = events[next]
        const inner = [...path, key?.type === EVENT_ID.SCALAR ? getScalarValue(text, key) : '']
        if (key !== undefined) put(inner, key)
        // A key that is itself a list or a mapping fits no schema.
        walk(key?.type === EVENT_ID.SCALAR ? inner : [...inner, ''])
        walk(inner)
      }
    } else {
      return
    }
    next++
  }

  walk([])
  return lines
}

function startOf (event: Event): number {
  if (event.type === EVENT_ID.SCALAR) return event.valueStart
  if (event.type === EVENT_ID.MAPPING || event.type === EVENT_ID.SEQUENCE) return event.start
  return 0
}

function keyOf (path: YamlPath): string {
  return path.join('\n')
}

/** `tokens[2].sha256` */
function nameOf (path: YamlPath): string {
  return path.map((part, index) => {
    if (typeof part === 'number') return `[${part}]`
    return `${index === 0 ? '' : '.'}${/^[\w-]{1,64}$/.test(part) ? part : quote(part)}`
  }).join('')
}

/** What is wrong, in the words of an operator. A schema's `title` completes the sentence "must be …". */
function complaintOf (
  { instancePath, keyword, params, message = '', parentSchema, data }: ErrorObject, document: unknown
): { readonly at: YamlPath, readonly sentence: string } {
  const at = pathOf(instancePath, document)
  switch (keyword) {
    case 'additionalProperties': {
      const known = Object.keys(parentSchema?.['properties'] ?? {})
      const key = String(params['additionalProperty'])
      return { at: [...at, key], sentence: `is an unknown key; allowed: ${known.join(', ')}${didYouMean(key, known)}` }
    }
    case 'required':
      return { at: [...at, String(params['missingProperty'])], sentence: MISSING }
    default: {
      // The value itself may be a secret.
      const expected = parentSchema?.['title']
      const keys = Object.keys(parentSchema?.['properties'] ?? {})
      const words = keyword === 'enum' ? params['allowedValues'] as readonly string[] : []
      const near = typeof data === 'string' ? didYouMean(data, words) : ''
      if (typeof expected === 'string') return { at, sentence: `must be ${expected}${near}` }
      return { at, sentence: keys.length > 0 ? `must be a mapping with ${keys.join(', ')}` : message }
    }
  }
}

/** The path behind a JSON pointer (RFC 6901); in a list its parts are positions. */
function pathOf (pointer: string, document: unknown): YamlPath {
  let value = document
  return pointer.split('/').slice(1).map((part) => {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    const isItem = Array.isArray(value)
    value = typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
    return isItem ? Number(key) : key
  })
}
