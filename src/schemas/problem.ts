import { Type, type Static } from '@sinclair/typebox'
import { kindOf, type SkillErrorCode, skillErrorCodes, type SkillErrorKind } from '../core/shared/errors.ts'
import { StringEnum } from './typebox.ts'

const STATUSES = {
  invalid: 400,
  forbidden: 403,
  missing: 404,
  outdated: 412,
  too_large: 413,
  unprocessable: 422,
  broken: 500,
  unavailable: 503
} as const satisfies Record<SkillErrorKind, number>

/** Titles, the same for every occurrence (RFC 9457 §3.1.3), and hints for the caller. */
const skillRows = {
  invalid_skill_name: ['Invalid skill name', 'GET /skills lists all names'],
  skill_not_found: ['Skill not found', 'GET /skills lists all names'],
  skill_changing: ['Skill is changing', 'Try again soon: the skill kept changing while it was read'],
  main_file_not_found: ['Main file not found',
    'The skill has no SKILL.md; GET /skills/:name/files lists the files it has'],
  main_file_too_large: ['Main file too large', 'GET /skills/:name/files/SKILL.md streams it'],
  main_file_permission_denied: ['Permission denied',
    'The service has no permission to read this file; its operator can give it'],
  main_file_not_utf8: ['Main file is not UTF-8', 'GET /skills/:name/files/SKILL.md returns its bytes'],
  disk_not_answering: ['Disk not answering', 'Try again after Retry-After; the log of the service has the cause'],
  main_file_unreadable: ['Main file unreadable', 'Try again; the log of the service has the cause'],
  invalid_file_path: ['Invalid file path', 'Name a file relative to the skill; GET /skills/:name/files lists them'],
  path_traversal: ['Path traversal', 'Name a file relative to the skill, without leaving it'],
  file_not_found: ['File not found', 'GET /skills/:name/files lists the files of the skill'],
  file_permission_denied: ['Permission denied',
    'The service has no permission to read this file; its operator can give it'],
  file_is_directory: ['Is a directory', 'GET /skills/:name/files lists the files of the skill'],
  file_not_regular: ['Not a regular file', 'GET /skills/:name/files lists the files of the skill'],
  file_not_text: ['Not a text file', 'Add ?encoding=base64, or ask for the bytes without Accept: application/json'],
  file_too_large: ['File too large', 'Ask for the bytes without Accept: application/json; Range works there'],
  file_io_error: ['I/O error', 'Try again; the log of the service has the cause'],
  archive_too_large: ['Archive too large', 'Fetch the files one by one; GET /skills/:name/files lists them'],
  skill_too_large: ['Skill too large',
    'It has no manifest, archive or revision; GET /skills/:name/files/:path reads each file of it'],
  revision_changed: ['Revision changed', 'Leave the revision out, or ask for the present one'],
  overloaded: ['Overloaded', 'Try again after Retry-After'],
  skills_folder_not_found: ['Skills folder not found', 'The service recovers by itself when the folder appears'],
  source_not_available: ['Source not available',
    'The service goes on trying to fetch it; GET /readyz says why it fails'],
  skills_folder_permission_denied: ['Skills folder unreadable',
    'The service recovers by itself when the folder can be read']
} as const satisfies Record<SkillErrorCode, readonly [title: string, text: string]>

/** Problems of HTTP: a closed set, part of the API like the codes of `SkillError`. */
const httpRows = {
  bad_request: [400, 'Bad request', 'The request is not valid HTTP, or not what this route takes'],
  bad_url: [400, 'Bad URL', 'The path is not percent-encoded UTF-8'],
  bad_query: [400, 'Bad query', 'A query parameter is not valid'],
  bad_cursor: [400, 'Bad cursor', 'The cursor belongs to another query; leave it out to begin with the first page'],
  invalid_json: [400, 'Invalid JSON', 'The body is not valid JSON in UTF-8'],
  invalid_archive: [400, 'Invalid archive', 'The archive is not a ZIP that can be read'],
  json_too_deep: [400, 'JSON nested too deeply', 'The body nests arrays and objects too deeply'],
  too_many_calls: [400, 'Too many calls', 'The request has more tool calls than one request may have'],
  unrecognised_tool_call: [400, 'Unrecognised tool call', 'No tool call of a known shape is in the body'],
  invalid_credentials: [400, 'Invalid credentials',
    'Send one Authorization header with Bearer and one token, and no token anywhere else; a proxy sends each of ' +
    'its headers once'],
  unauthenticated: [401, 'Not authenticated',
    'Send Authorization: Bearer and a token that the operator of the service has given you'],
  invalid_token: [401, 'Invalid token',
    'The token is unknown, damaged or no longer valid; ask the operator of the service for another'],
  token_expired: [401, 'Token expired', 'The token has expired; ask for a new one'],
  insufficient_scope: [403, 'Insufficient scope', 'The token lacks the scope that this route needs'],
  host_not_allowed: [403, 'Host not allowed',
    'The service does not answer to the name in the Host header; see ALLOWED_HOSTS'],
  origin_not_allowed: [403, 'Origin not allowed',
    'The service does not answer to web pages of this origin; see ALLOWED_ORIGINS'],
  hook_refused: [403, 'Hook refused', 'The signature matches no configured webhook secret'],
  route_not_found: [404, 'Route not found', 'There is no such route; GET / lists the routes'],
  tool_not_found: [404, 'Tool not found', 'There is no such tool; GET /agent/tools lists the tools'],
  artifact_not_found: [404, 'Artifact not found', 'Not in the current index; fetch the index again'],
  method_not_allowed: [405, 'Method not allowed',
    'The route does not take this method; the Allow header lists those it takes'],
  not_acceptable: [406, 'Not acceptable',
    'Accept does not allow text/event-stream, which is all that this route sends'],
  request_timeout: [408, 'Request timeout', 'The request arrived too slowly'],
  precondition_failed: [412, 'Precondition failed', 'If-Match does not match the current ETag, which a GET returns'],
  body_too_large: [413, 'Body too large', 'The body of the request is too large'],
  uri_too_long: [414, 'URI too long', 'A segment of the path is too long'],
  unsupported_media_type: [415, 'Unsupported media type',
    'Send the body as application/json, in UTF-8 and without Content-Encoding'],
  range_not_satisfiable: [416, 'Range not satisfiable',
    'The range lies beyond the end of the file; Content-Range has its size'],
  rate_limited: [429, 'Too many requests', 'The caller is past its limit; Retry-After says when to try again'],
  headers_too_large: [431, 'Header fields too large', 'The request line and headers together are too large'],
  internal_error: [500, 'Internal error',
    'The service failed; its log has the cause under this request id'],
  transfer_encoding_unsupported: [501, 'Transfer coding not supported',
    'Send the body with Content-Length, or with Transfer-Encoding: chunked alone'],
  too_many_streams: [503, 'Too many streams', 'Too many open event streams; try again later, or ask GET /skills'],
  audit_unavailable: [503, 'Audit log unavailable',
    'The audit log cannot be written, and without it nothing may be read'],
  issuer_unavailable: [503, 'Issuer unavailable', 'The keys of the issuer of the token cannot be read; try again soon'],
  not_ready: [503, 'Not ready', 'The service is not ready; try again soon']
} as const satisfies Record<string, readonly [status: number, title: string, text: string]>

export type HttpProblemCode = keyof typeof httpRows
export type ProblemCode = SkillErrorCode | HttpProblemCode

interface ProblemText {
  readonly status: number
  readonly title: string
  /** Hint for the caller, which follows the message of a `SkillError`; for HTTP, the default message. */
  readonly text: string
}

/** Every problem that an answer can have. */
export const problems = Object.fromEntries([
  ...skillErrorCodes.map((code) => [code, STATUSES[kindOf(code)], ...skillRows[code]] as const),
  ...Object.entries(httpRows).map(([code, row]) => [code, ...row] as const)
].map(([code, status, title, text]) => [code, { status, title, text }])) as Readonly<Record<ProblemCode, ProblemText>>

/** Shape of every error answer (RFC 9457), sent as `application/problem+json`. */
export const ProblemSchema = Type.Object({
  type: Type.String({ description: '`urn:skillserve:problem:` and the code' }),
  title: Type.String({ description: 'The kind of problem, the same for every occurrence' }),
  status: Type.Integer({ minimum: 400, maximum: 599 }),
  detail: Type.String({ description: 'What happened, and what to do next' }),
  instance: Type.String({ description: 'Path of the request, percent-encoded, without the query' }),
  error: Type.String({ description: "The tool's own sentence: the same as through a tool call" }),
  code: StringEnum(Object.keys(problems) as ProblemCode[], { description: 'Stable name of the problem' }),
  requestId: Type.Optional(Type.String({ description: 'Names the request in the log of the service' }))
}, { $id: 'Problem', title: 'Problem' })

export type Problem = Readonly<Static<typeof ProblemSchema>>
