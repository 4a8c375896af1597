import type { Static, TSchema } from '@sinclair/typebox'
import { Ajv, type ErrorObject } from 'ajv'
import { EVENT_ID, getScalarValue, load, parseEvents, YAMLException } from 'js-yaml'
import { maskSecrets } from '../../core/shared/text.ts'
import { readRegularFile, reasonOf } from './files.ts'
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

/**
 * Reads a YAML file that an operator has written. Keys that the schema does not name are refused.
 * @throws ConfigError of one line, `FILE:LINE: KEY …`
 */
export async function readYamlFile<Schema extends TSchema> (
  path: string, schema: Schema, setting?: string
): Promise<YamlFile<Static<Schema>>> {
  return parseYamlFile(path, await readTextFile(path, setting), schema)
}

/**
 * @param setting that names the file, for the error about a file that cannot be read: `PORT or --port`
 * @throws ConfigError when the file cannot be read as text
 */
export async function readTextFile (path: string, setting?: string): Promise<string> {
  const named = setting === undefined ? path : `${setting}: ${path}`
  const bytes = await readRegularFile(path).catch((cause: unknown) => {
    throw new ConfigError(`${named} cannot be read: ${reasonOf(cause)}`, { cause })
  })
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new ConfigError(`${named} is not UTF-8 text`, { cause })
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
  if (text.trim() === '') throw fail(1, 'the file is empty')
  const value = parse(text, fail)
  let offsets: ReadonlyMap<string, number> | undefined
  const file = {
    path,
    lineOf: (at: YamlPath): number => {
      offsets ??= offsetsByPath(text)
      const offset = offsets.get(keyOf(at))
      if (offset === undefined) return file.lineOf(at.slice(0, -1))
      return text.slice(0, offset).split('\n').length
    },
    error: (at: YamlPath, sentence: string) => fail(file.lineOf(at), `${nameOf(at)} ${sentence}`.trimStart())
  }
  const validate = ajv.compile<Static<Schema>>(schema)
  if (validate(value)) return { ...file, value }
  // A mistyped key explains the one that is missing.
  const errors = validate.errors ?? []
  const first = errors.find(({ keyword }) => keyword === 'additionalProperties') ?? errors[0]
  if (first === undefined) throw fail(1, 'the file does not fit its schema')
  const { at, sentence } = complaintOf(first)
  throw file.error(at, sentence)
}

function parse (text: string, fail: (line: number, sentence: string) => ConfigError): unknown {
  try {
    return load(text, { maxDepth: MAX_DEPTH, maxAliases: 0 })
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    // Without the cause, which quotes the lines around: they may hold secrets.
    throw fail((error.mark?.line ?? 0) + 1, `not valid YAML: ${error.reason}`)
  }
}

/** Where everything in the document begins, by path: a key where there is one, else the value. */
function offsetsByPath (text: string): ReadonlyMap<string, number> {
  const offsets = new Map([['', 0]])
  const events = parseEvents(text, { maxDepth: MAX_DEPTH }).values()
  const next = () => events.next().value
  function add (path: YamlPath, event = next()): void {
    if (event === undefined || event.type === EVENT_ID.POP) return
    const key = keyOf(path)
    if (event.type === EVENT_ID.SCALAR && !offsets.has(key)) offsets.set(key, event.valueStart)
    if (event.type !== EVENT_ID.SEQUENCE && event.type !== EVENT_ID.MAPPING) return
    if (!offsets.has(key)) offsets.set(key, event.start)
    for (let index = 0, item = next(); item !== undefined && item.type !== EVENT_ID.POP; index++, item = next()) {
      // A key that is a list or a mapping fits no schema.
      const name = item.type === EVENT_ID.SCALAR ? getScalarValue(text, item) : ''
      add([...path, event.type === EVENT_ID.MAPPING ? name : index], item)
      if (event.type === EVENT_ID.MAPPING) add([...path, name])
    }
  }
  next()
  add([])
  return offsets
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
  { instancePath, keyword, params, message = '', parentSchema, data }: ErrorObject
): { readonly at: YamlPath, readonly sentence: string } {
  const at = pathOf(instancePath)
  if (keyword === 'required') return { at: [...at, String(params['missingProperty'])], sentence: 'is missing' }
  if (keyword === 'additionalProperties') {
    const known = Object.keys(parentSchema?.['properties'] ?? {})
    const key = String(params['additionalProperty'])
    return { at: [...at, key], sentence: `is an unknown key; allowed: ${known.join(', ')}${didYouMean(key, known)}` }
  }
  const words = keyword === 'enum' ? params['allowedValues'] as readonly string[] : []
  const expected = parentSchema?.['title'] as unknown ?? (keyword === 'enum' ? `one of ${words.join(', ')}` : undefined)
  if (typeof expected !== 'string') return { at, sentence: message }
  // Without the value itself, which may be a secret.
  return { at, sentence: `must be ${expected}${typeof data === 'string' ? didYouMean(data, words) : ''}` }
}

/** The path behind a JSON pointer (RFC 6901). */
function pathOf (pointer: string): YamlPath {
  const keys = pointer.split('/').slice(1).map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  return keys.map((key) => /^\d+$/.test(key) ? Number(key) : key)
}
