import type { FastifyRequest } from 'fastify'
import { isMainFile } from '../core/format/main-files.ts'
import { LISTEN, type ObservedOperation } from '../http/observer.ts'
import type { ReadEvent, RouteReads } from '../http/route-config.ts'
import type { ObservedCall } from '../tools/calls/observer.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import { own } from '../core/shared/json.ts'
import { decodePercent } from '../core/shared/text.ts'
import { maskSecrets } from '../secrets.ts'

/** The read of a request, a tool call or an MCP operation, as audit log, metrics and traces report it. */
export interface Read {
  readonly event: AuditEvent
  readonly api: string | undefined
  readonly skill?: string | undefined
  readonly path?: string | undefined
  /** The words of a search. */
  readonly query?: string | undefined
  /** The number of skills that a search has found. */
  readonly results?: number | undefined
}

/** The kinds of lines of the audit log, with their meaning for the documents. */
export const AUDIT_EVENTS = {
  'skill.read': 'the main file of a skill, or a page about the skill',
  'skill.file_read': 'another file of a skill',
  'skill.archive': 'a skill as an archive',
  'skill.manifest': 'the list of files of a skill',
  'skill.entry': 'the catalog entry of a skill',
  'skill.list': 'names or entries of many skills; one line for a list',
  'skill.search': 'a search, with its words and the number of results',
  'discovery.index': 'a discovery index',
  'events.open': 'a stream of changes; its line is written when it opens',
  'auth.failed': 'a caller without valid credentials: 401. An address has 20 lines a minute, and then one with a count',
  'access.denied': 'a request that was refused before anything was read',
  'policy.loaded': 'an access file, trust file or lock came into force',
  'policy.rejected': 'one of them cannot be used; the last good one stays in force',
  'skill.changed': 'a skill was added, changed or removed on the disk',
  'skill.quarantined': 'the lock or the trust file refuses a skill',
  'skill.released': 'a skill that was refused is served again',
  'service.started': 'the start of the process',
  'service.stopped': 'its end'
} as const

export type AuditEvent = keyof typeof AUDIT_EVENTS

/** The methods of MCP with the event of their read; undefined for those that read no skill, or report each call. */
const OPERATIONS: ReadonlyMap<string, ReadEvent | undefined> = new Map([
  ...[
    'initialize', 'ping', 'server/discover', 'tools/list', 'tools/call', 'resources/templates/list',
    'resources/subscribe', 'resources/unsubscribe', 'completion/complete', 'logging/setLevel'
  ].map((method) => [method, undefined] as const),
  ['prompts/list', 'skill.list'],
  ['prompts/get', 'skill.read'],
  ['resources/list', 'skill.list'],
  ['resources/read', 'skill.file_read'],
  ['resources/directory/read', 'skill.manifest'],
  ['skills/list', 'skill.list'],
  ['skills/get', 'skill.entry'],
  [LISTEN, 'events.open']
])

/** Names an MCP request in metrics and spans: unknown methods share one name. */
export function operationName (method: string): string {
  return OPERATIONS.has(method) ? method : '_OTHER'
}

/** The methods that metrics and spans name: https://opentelemetry.io/docs/specs/semconv/http */
const METHODS: ReadonlySet<string> =
  new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE'])

/** Names an HTTP method in metrics and spans: unknown methods share one name. */
export function methodName (method: string): string {
  return METHODS.has(method) ? method : '_OTHER'
}

/** A longer text of a caller is cut, in characters. */
const MAX_CHARACTERS = 512
const MAX_QUERY_CHARACTERS = 200

/** Finds what a request asked for by its route; undefined for routes that read no skill, or report each call. */
export function readOfRequest (request: FastifyRequest): Read | undefined {
  const { event, api } = readsOf(request) ?? {}
  if (event === undefined) return undefined
  const { params, query } = request
  const skill = cut(own(params, 'name'))
  if (event === 'skill.file_read') return readOfFile(cut(own(params, '*')), { api, skill })
  const words = event === 'skill.list' ? own(query, 'q') : undefined
  if (words === undefined) return { event, api, skill }
  return { event: 'skill.search', api, query: cut(words, MAX_QUERY_CHARACTERS), results: request.found }
}

/** Finds what a call of a tool asked for. */
export function readOfCall ({ tool, args, dialect, origin }: ObservedCall, outcome: ToolOutcome): Read | undefined {
  if (tool === undefined || origin === undefined) return undefined
  const { reads, skillArgument } = tool
  const given = skillArgument === undefined ? undefined : cut(own(args, skillArgument))
  const route = apiOf(origin as FastifyRequest)
  const api = route === 'tool-call' ? `tool-call/${dialect}` : route
  if (reads.event === 'skill.file_read') return readOfFile(cut(own(args, reads.pathArgument)), { api, skill: given })
  if (reads.event !== 'skill.search') return { event: reads.event, api, skill: outcome.skill ?? given }
  const found = own(outcome.result, 'skills')
  const query = cut(own(args, reads.queryArgument), MAX_QUERY_CHARACTERS)
  return { event: reads.event, api, query, results: Array.isArray(found) ? found.length : undefined }
}

export function readOfOperation ({ method, params, origin }: ObservedOperation): Read | undefined {
  const event = OPERATIONS.get(method)
  if (event === undefined) return undefined
  const api = apiOf(origin)
  if (method === 'prompts/get') return { event, api, skill: cut(own(params, 'name')) }
  const [, address, file] = /^skill:\/\/([^/?#]+)(?:\/([^?#]*))?$/.exec(cut(own(params, 'uri')) ?? '') ?? []
  const skill = address && (decodePercent(address) ?? address)
  if (event === 'skill.file_read') return readOfFile(file && (decodePercent(file) ?? file), { api, skill })
  return { event, api, skill }
}

/** Reading the main file by its path is `skill.read` too. */
function readOfFile (path: string | undefined, { api, skill }: Pick<Read, 'api' | 'skill'>): Read {
  return { event: path !== undefined && isMainFile(path) ? 'skill.read' : 'skill.file_read', api, skill, path }
}

/** Finds the API that a request came through; undefined for a route that reads nothing. */
export function apiOf (request: FastifyRequest): string | undefined {
  return readsOf(request)?.api
}

function readsOf (request: FastifyRequest): Exclude<RouteReads, 'nothing'> | undefined {
  const { reads } = request.routeOptions.config
  const said = typeof reads === 'function' ? reads(request) : reads
  return said === 'nothing' ? undefined : said
}

/** Masks secrets in a text of a caller, who may write one anywhere, and cuts the text; undefined for other values. */
export function cut (value: unknown, characters = MAX_CHARACTERS): string | undefined {
  return typeof value === 'string' || typeof value === 'number'
    ? maskSecrets(String(value)).slice(0, characters)
    : undefined
}
