import type { Static, TSchema } from '@sinclair/typebox'
import { Ajv, type ErrorObject } from 'ajv'
import { type Document, isMap, isNode, LineCounter, parseDocument, visit } from 'yaml'
import { maskSecrets } from '../secrets.ts'
import { readRegularFile, reasonOf } from './files.ts'
import { ConfigError, didYouMean, quote } from './setting.ts'

/** Path of a value in a document: keys of mappings and indexes of lists. */
export type YamlPath = ReadonlyArray<string | number>

/** A file of an operator that was read and checked against its schema. */
export interface YamlFile<Value> {
  readonly path: string
  readonly value: Value
  /** The line of a key or an item, counted from 1; for one that is missing, that of its parent. */
  lineOf (path: YamlPath): number
  /** Makes an error `FILE:LINE: KEY sentence`, for rules that a schema cannot express. */
  error (path: YamlPath, sentence: string): ConfigError
}

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

/** Compiles each schema once, however often its file is read again. */
const ajv = new Ajv({ allErrors: true, verbose: true, strict: false, validateSchema: false, addUsedSchema: false })

/**
 * Parses and checks the text of a YAML file.
 * @param path names the text in errors
 */
export function parseYamlFile<Schema extends TSchema> (
  path: string, text: string, schema: Schema
): YamlFile<Static<Schema>> {
  // Messages quote keys, and a key may be a token that was pasted in the wrong place.
  const fail = (line: number, sentence: string) => new ConfigError(`${path}:${line}: ${maskSecrets(sentence)}`)
  // Editors may empty a file for a moment while they write it.
  if (text.trim() === '') throw fail(1, 'the file is empty')
  const lineCounter = new LineCounter()
  const document = parseDocument(text, { lineCounter, prettyErrors: false, logLevel: 'error' })
  const lineAt = (offset = 0): number => lineCounter.linePos(offset).line
  const lineOf = (at: YamlPath): number => lineAt(offsetOf(document, at))
  const [problem] = [...document.errors, ...document.warnings]
  if (problem !== undefined) throw fail(lineAt(problem.pos[0]), `not valid YAML: ${problem.message}`)
  visit(document, { Alias: (_key, { range }) => { throw fail(lineAt(range?.[0]), 'YAML aliases are not supported') } })
  const value: unknown = document.toJS()
  const file = {
    path,
    lineOf,
    error: (at: YamlPath, sentence: string) => fail(lineOf(at), `${nameOf(at)} ${sentence}`.trimStart())
  }
  const validate = ajv.compile<Static<Schema>>(schema)
  if (validate(value)) return { ...file, value }
  // An unknown key often explains a missing one.
  const errors = validate.errors ?? []
  const first = errors.find(({ keyword }) => keyword === 'additionalProperties') ?? errors[0]
  if (first === undefined) throw fail(1, 'the file does not fit its schema')
  const { at, sentence } = complaintOf(first)
  throw file.error(at, sentence)
}

/** Returns where a key or an item begins; for one that is missing, where its parent begins. */
function offsetOf (document: Document.Parsed, path: YamlPath): number {
  const key = path.at(-1)
  if (key === undefined) return 0
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true)
  const pair = isMap(parent) ? parent.items.find((each) => String(each.key) === String(key)) : undefined
  const node = pair?.key ?? document.getIn(path, true)
  return isNode(node) && node.range ? node.range[0] : offsetOf(document, path.slice(0, -1))
}

/** `tokens[2].sha256` */
function nameOf (path: YamlPath): string {
  return path.map((part, index) => {
    if (typeof part === 'number') return `[${part}]`
    return `${index === 0 ? '' : '.'}${/^[\w-]{1,64}$/.test(part) ? part : quote(part)}`
  }).join('')
}

/** Describes an error of ajv to an operator. A schema's `title` completes the sentence "must be …". */
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
  // The value is not quoted, since it may be a secret.
  return { at, sentence: `must be ${expected}${typeof data === 'string' ? didYouMean(data, words) : ''}` }
}

/** Parses a JSON pointer (RFC 6901). */
function pathOf (pointer: string): YamlPath {
  const keys = pointer.split('/').slice(1).map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  return keys.map((key) => /^\d+$/.test(key) ? Number(key) : key)
}
