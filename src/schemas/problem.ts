import { Type, type Static } from '@sinclair/typebox'
import { kindOf, type SkillErrorCode, skillErrorCodes, type SkillErrorKind } from '../core/shared/errors.ts'

interface SkillProblemText {
  /** The same for every occurrence (RFC 9457 §3.1.3). */
  readonly title: string
  /** What the caller can do next: follows the domain's own sentence in `detail`. */
  readonly hint: string
}

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

const skillTexts = {
  invalid_skill_name: { title: 'Invalid skill name', hint: 'GET /skills lists the names there are' },
  skill_not_found: { title: 'Skill not found', hint: 'GET /skills lists the names there are' },
  skill_changing: {
    title: 'Skill is changing', hint: 'Try again soon: the skill was rewritten for as long as it was read'
  },
  main_file_not_found: {
    title: 'Main file not found', hint: 'The skill has no SKILL.md; GET /skills/:name/files lists the files it has'
  },
  main_file_too_large: { title: 'Main file too large', hint: 'GET /skills/:name/files/SKILL.md streams it' },
  main_file_permission_denied: {
    title: 'Permission denied', hint: 'The service may not read this file until its operator gives it permission'
  },
  main_file_not_utf8: { title: 'Main file is not UTF-8', hint: 'GET /skills/:name/files/SKILL.md returns its bytes' },
  disk_not_answering: {
    title: 'Disk not answering', hint: 'Try again after Retry-After; the log of the service has the cause'
  },
  main_file_unreadable: { title: 'Main file unreadable', hint: 'Try again; the log of the service has the cause' },
  invalid_file_path: {
    title: 'Invalid file path', hint: 'Name a file relative to the skill; GET /skills/:name/files lists them'
  },
  path_traversal: { title: 'Path traversal', hint: 'Name a file relative to the skill, without leaving it' },
  file_not_found: { title: 'File not found', hint: 'GET /skills/:name/files lists the files of the skill' },
  file_permission_denied: {
    title: 'Permission denied', hint: 'The service may not read this file until its operator gives it permission'
  },
  file_is_directory: { title: 'Is a directory', hint: 'GET /skills/:name/files lists the files of the skill' },
  file_not_regular: { title: 'Not a regular file', hint: 'GET /skills/:name/files lists the files of the skill' },
  file_not_text: {
    title: 'Not a text file', hint: 'Add ?encoding=base64, or ask for the bytes without Accept: application/json'
  },
  file_too_large: {
    title: 'File too large', hint: 'Ask for the bytes without Accept: application/json; Range works there'
  },
  file_io_error: { title: 'I/O error', hint: 'Try again; the log of the service has the cause' },
  archive_too_large: {
    title: 'Archive too large', hint: 'Fetch the files one by one; GET /skills/:name/files lists them'
  },
  skill_too_large: {
    title: 'Skill too large',
    hint: 'It has no manifest, archive or revision; GET /skills/:name/files/:path reads each file of it'
  },
  revision_changed: { title: 'Revision changed', hint: 'Leave the revision out, or ask for the present one' },
  overloaded: { title: 'Overloaded', hint: 'Try again after Retry-After' },
  skills_folder_not_found: {
    title: 'Skills folder not found', hint: 'The service recovers by itself when the folder appears'
  },
  source_not_available: {
    title: 'Source not available', hint: 'The service goes on trying to fetch it; GET /readyz says why it fails'
  },
  skills_folder_permission_denied: {
    title: 'Skills folder unreadable', hint: 'The service recovers by itself when the folder can be read'
  }
} as const satisfies Record<SkillErrorCode, SkillProblemText>

interface SkillProblem extends SkillProblemText {
  readonly status: number
}

/** The domain's errors as HTTP. */
export const skillProblems = Object.fromEntries(skillErrorCodes.map((code) =>
  [code, { status: STATUSES[kindOf(code)], ...skillTexts[code] }])) as Readonly<Record<SkillErrorCode, SkillProblem>>

/**
 * What only HTTP can get wrong: a closed set, part of the API like the codes of the domain. `detail` is the sentence
 * for a problem that is reported without one.
 */
export const httpProblems = {
  bad_request: {
    status: 400, title: 'Bad request', detail: 'The request is not valid HTTP, or not what this route takes'
  },
  bad_url: { status: 400, title: 'Bad URL', detail: 'The path is not percent-encoded UTF-8' },
  bad_query: { status: 400, title: 'Bad query', detail: 'A query parameter is not valid' },
  bad_cursor: {
    status: 400,
    title: 'Bad cursor',
    detail: 'The cursor is not one that this query was answered with; leave it out to begin with the first page'
  },
  invalid_json: { status: 400, title: 'Invalid JSON', detail: 'The body is not valid JSON in UTF-8' },
  invalid_archive: { status: 400, title: 'Invalid archive', detail: 'The archive is not a ZIP that can be read' },
  json_too_deep: {
    status: 400, title: 'JSON nested too deeply', detail: 'The body nests arrays and objects too deeply'
  },
  too_many_calls: {
    status: 400, title: 'Too many calls', detail: 'The request holds more tool calls than one request may'
  },
  unrecognised_tool_call: {
    status: 400, title: 'Unrecognised tool call', detail: 'No tool call of a known shape is in the body'
  },
  invalid_credentials: {
    status: 400,
    title: 'Invalid credentials',
    detail: 'Send one Authorization header with Bearer and one token, and no token anywhere else; a proxy sends each ' +
      'of its headers once'
  },
  unauthenticated: {
    status: 401,
    title: 'Not authenticated',
    detail: 'Send Authorization: Bearer and a token that the operator of the service has given you'
  },
  invalid_token: {
    status: 401,
    title: 'Invalid token',
    detail: 'The token is unknown, damaged or no longer valid; ask the operator of the service for another'
  },
  token_expired: { status: 401, title: 'Token expired', detail: 'The token has expired; ask for a new one' },
  insufficient_scope: {
    status: 403, title: 'Insufficient scope', detail: 'The token lacks the scope that this route needs'
  },
  host_not_allowed: {
    status: 403,
    title: 'Host not allowed',
    detail: 'The service does not answer to the name in the Host header; see ALLOWED_HOSTS'
  },
  origin_not_allowed: {
    status: 403,
    title: 'Origin not allowed',
    detail: 'The service does not answer to web pages of this origin; see ALLOWED_ORIGINS'
  },
  hook_refused: {
    status: 403,
    title: 'Hook refused',
    detail: 'No source has a webhook with the secret that the request is signed with'
  },
  route_not_found: { status: 404, title: 'Route not found', detail: 'There is no such route; GET / lists the routes' },
  tool_not_found: {
    status: 404, title: 'Tool not found', detail: 'There is no such tool; GET /agent/tools lists the tools'
  },
  artifact_not_found: {
    status: 404,
    title: 'Artifact not found',
    detail: 'The index does not list this address, or no longer; fetch the index again'
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    detail: 'The route does not take this method; the Allow header lists those it takes'
  },
  not_acceptable: {
    status: 406,
    title: 'Not acceptable',
    detail: 'Accept does not allow text/event-stream, which is all that this route sends'
  },
  request_timeout: { status: 408, title: 'Request timeout', detail: 'The request arrived too slowly' },
  precondition_failed: {
    status: 412,
    title: 'Precondition failed',
    detail: 'If-Match names another representation than the present one, whose ETag a GET returns'
  },
  body_too_large: { status: 413, title: 'Body too large', detail: 'The body of the request is too large' },
  uri_too_long: { status: 414, title: 'URI too long', detail: 'A segment of the path is too long' },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    detail: 'Send the body as application/json, in UTF-8 and without Content-Encoding'
  },
  range_not_satisfiable: {
    status: 416,
    title: 'Range not satisfiable',
    detail: 'The range lies beyond the end of the file; Content-Range has its size'
  },
  rate_limited: {
    status: 429, title: 'Too many requests', detail: 'The caller is past its limit; Retry-After says when to try again'
  },
  headers_too_large: {
    status: 431, title: 'Header fields too large', detail: 'The request line and headers together are too large'
  },
  internal_error: {
    status: 500,
    title: 'Internal error',
    detail: 'Something went wrong in the service; its log has the cause under this request id'
  },
  transfer_encoding_unsupported: {
    status: 501,
    title: 'Transfer coding not supported',
    detail: 'Send the body with Content-Length, or with Transfer-Encoding: chunked alone'
  },
  too_many_streams: {
    status: 503,
    title: 'Too many streams',
    detail: 'As many clients follow events as may at the same time; try again later, or ask GET /skills'
  },
  audit_unavailable: {
    status: 503,
    title: 'Audit log unavailable',
    detail: 'The audit log cannot be written, and without it nothing may be read'
  },
  issuer_unavailable: {
    status: 503,
    title: 'Issuer unavailable',
    detail: 'The keys of the issuer of the token cannot be read; try again soon'
  },
  not_ready: { status: 503, title: 'Not ready', detail: 'The service is not ready; try again soon' }
} as const satisfies Record<string, { readonly status: number, readonly title: string, readonly detail: string }>

export type HttpProblemCode = keyof typeof httpProblems
export type ProblemCode = SkillErrorCode | HttpProblemCode

/** Every error answer of the service (RFC 9457), sent as `application/problem+json`. */
export const ProblemSchema = Type.Object({
  type: Type.String(
    { description: '`urn:skillserve:problem:` and the code', examples: ['urn:skillserve:problem:skill_not_found'] }
  ),
  title: Type.String(
    { description: 'The kind of problem, the same for every occurrence', examples: ['Skill not found'] }
  ),
  status: Type.Integer({ minimum: 400, maximum: 599, examples: [404] }),
  detail: Type.String({
    description: 'What happened, and what to do next',
    examples: ["Skill 'demo' not found in skills folder. GET /skills lists the names there are."]
  }),
  instance: Type.String(
    { description: 'Path of the request, percent-encoded, without the query', examples: ['/skills/demo'] }
  ),
  error: Type.String({
    description: "The tool's own sentence: the same as through a tool call",
    examples: ["Skill 'demo' not found in skills folder"]
  }),
  code: Type.Unsafe<ProblemCode>({
    type: 'string',
    description: 'Stable name of the problem',
    enum: [...Object.keys(skillProblems), ...Object.keys(httpProblems)],
    examples: ['skill_not_found']
  }),
  requestId: Type.Optional(
    Type.String({ description: 'Names the request in the log of the service', examples: ['5f0c9a1e-1'] })
  )
}, { $id: 'Problem', title: 'Problem' })

export type Problem = Readonly<Static<typeof ProblemSchema>>
