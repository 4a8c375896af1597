import { ProtocolErrorCode } from '@modelcontextprotocol/server'
import { Ajv } from 'ajv'
import { isDeeperThan, own, toWellFormed } from '../core/shared/json.ts'
import { MAX_JSON_DEPTH } from '../tools/limits.ts'

type RequestId = string | number

/** An error answer that is sent without running a handler. */
export interface ErrorAnswer {
  readonly jsonrpc: '2.0'
  readonly id: RequestId | null
  readonly error: { readonly code: number, readonly message: string }
}

const TEXT = { type: 'string' } as const
const OBJECT = { type: 'object' } as const

function objectWith (properties: object, required: string[] = []) {
  return { ...OBJECT, properties: { _meta: OBJECT, ...properties }, required }
}

export const PAGE = objectWith({ cursor: TEXT })
export const URI = objectWith({ uri: TEXT, cursor: TEXT }, ['uri'])
const NAMED = objectWith({ name: TEXT, arguments: OBJECT }, ['name'])

/** Schemas of parameters. The SDK answers some wrong ones with an internal error that shows its validator. */
const PARAMS: Readonly<Record<string, object>> = {
  initialize: objectWith(
    { protocolVersion: TEXT, capabilities: OBJECT, clientInfo: objectWith({ name: TEXT, version: TEXT }, ['name']) },
    ['protocolVersion', 'capabilities', 'clientInfo']
  ),
  'tools/list': PAGE,
  'tools/call': NAMED,
  'prompts/list': PAGE,
  'prompts/get': objectWith({ name: TEXT, arguments: { ...OBJECT, additionalProperties: TEXT } }, ['name']),
  'resources/list': PAGE,
  'resources/templates/list': PAGE,
  'resources/read': URI,
  'resources/subscribe': URI,
  'resources/unsubscribe': URI,
  'resources/directory/read': URI,
  'skills/list': PAGE,
  'skills/get': URI,
  'subscriptions/listen': objectWith({ notifications: OBJECT })
}

/** Compiles each schema when it is first needed. */
const ajv = new Ajv({ strict: false, schemas: { ...PARAMS } })

export function parseMessage (line: string): { readonly value: unknown } | ErrorAnswer {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return errorAnswer(null, ProtocolErrorCode.ParseError, 'Parse error: each line must be one JSON-RPC message')
  }
  if (!isDeeperThan(value, MAX_JSON_DEPTH)) return { value }
  return invalidRequest(idOf(own(value, 'id')), `it nests arrays and objects deeper than ${MAX_JSON_DEPTH} levels`)
}

/**
 * Checks a message. Returns it without parameters that are `null`, which clients send for absent ones; or an error
 * answer if it is not JSON-RPC 2.0 or has wrong parameters. Lone surrogates become U+FFFD.
 * @param given of bounded depth
 */
export function checkMessage (given: unknown): { readonly message: object } | ErrorAnswer {
  const value = toWellFormed(given)
  if (typeof value !== 'object' || value === null || Array.isArray(value) || own(value, 'jsonrpc') !== '2.0') {
    return invalidRequest(null, 'send one JSON-RPC 2.0 object; batches are not supported')
  }
  const [method, id] = [own(value, 'method'), own(value, 'id')]
  if (method === undefined && ('result' in value || 'error' in value)) return { message: value }
  if (typeof method !== 'string') return invalidRequest(idOf(id), 'method is not a string')
  if ('id' in value && idOf(id) === null) return invalidRequest(null, 'id is neither a string nor a safe integer')
  const { params, ...rest } = value as { readonly params?: unknown }
  if (params === undefined || params === null) return check(method, id, rest, {})
  if (typeof params !== 'object' || Array.isArray(params)) {
    return wrongParams(method, id, 'params is not an object')
  }
  const present = Object.fromEntries(Object.entries(params).filter(([, member]) => member !== null))
  return check(method, id, { ...rest, params: present }, present)
}

export function errorAnswer (id: RequestId | null, code: number, message: string): ErrorAnswer {
  return { jsonrpc: '2.0', id, error: { code, message } }
}

export function invalidRequest (id: RequestId | null, problem: string): ErrorAnswer {
  return errorAnswer(id, ProtocolErrorCode.InvalidRequest, `Invalid request: ${problem}`)
}

function wrongParams (method: string, id: unknown, problem: string): ErrorAnswer {
  return errorAnswer(idOf(id), ProtocolErrorCode.InvalidParams, `Invalid parameters of ${method}: ${problem}`)
}

function idOf (id: unknown): RequestId | null {
  if (typeof id === 'string') return id.toWellFormed()
  return Number.isSafeInteger(id) ? id as number : null
}

function check (
  method: string, id: unknown, message: object, params: object
): { readonly message: object } | ErrorAnswer {
  const validate = Object.hasOwn(PARAMS, method) ? ajv.getSchema(method) : undefined
  if (validate === undefined || validate(params) === true) return { message }
  const [{ instancePath = '', message: problem = 'is not valid' } = {}] = validate.errors ?? []
  const where = instancePath.slice(1).replaceAll('/', '.') || 'params'
  return wrongParams(method, id, `${where} ${problem}`)
}
