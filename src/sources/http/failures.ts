import type { IncomingHttpHeaders } from 'node:http'
import { errorCode } from '../../core/shared/system-errors.ts'
import { DISK_CODES, SourceError, type SourceErrorCode } from '../source-error.ts'

const UNKNOWN_HOST = 'the name of the host cannot be resolved: check how it is written'

/** What failures of a connection mean, by their codes. */
const FAILURES: ReadonlyArray<readonly [codes: RegExp, code: SourceErrorCode, sentence: string]> = [
  [/^(?:ENOTFOUND|EAI_AGAIN)$/, 'unreachable', UNKNOWN_HOST],
  [/^ECONNREFUSED$/, 'unreachable', 'the host refuses the connection: check its port, and whether it runs'],
  [/CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO/, 'tls', 'the certificate of the host is not accepted'],
  [/^HPE_|^EPROTO$/, 'bad_answer', 'the host answers in another protocol: check its port'],
  [/^(?:Z_|ERR_.*BROTLI)/, 'bad_answer', 'the host sends a compressed body that is damaged']
]

export function isAbortError (error: unknown): boolean {
  return error instanceof Error && ['AbortError', 'TimeoutError'].includes(error.name)
}

/** Explains an error of a connection. Returns errors of the disk, and of an abort, as they are. */
export function connectionError (error: unknown): unknown {
  const details = errorCode(error)
  if (error instanceof SourceError || isAbortError(error) || DISK_CODES.has(details)) return error
  const [, code, sentence] = FAILURES.find(([codes]) => codes.test(details)) ??
    [details, 'unreachable', 'the host cannot be reached, or breaks off'] as const
  return new SourceError(code, sentence, { details })
}

/** Explains a status that is not an answer. */
export function statusError (status: number, headers: IncomingHttpHeaders, hasCredentials: boolean): SourceError {
  const error = (code: SourceErrorCode, sentence: string): SourceError =>
    new SourceError(code, sentence, { retryAfterMs: retryAfter(headers['retry-after'] ?? '') })
  if (status === 401 || status === 403) {
    return error('auth_failed', hasCredentials
      ? 'the host refuses the credentials'
      : `the host refuses the request (${status}), and no credentials are configured`)
  }
  if (status === 404 || status === 410) {
    return error('not_found', 'the host has nothing at this address, or does not show it')
  }
  if (status === 429) return error('rate_limited', 'the host asks for fewer requests')
  return error(status >= 500 ? 'unreachable' : 'bad_answer', `the host answers with status ${status}`)
}

/** Milliseconds, of a header that has seconds or a date. */
function retryAfter (text: string): number | undefined {
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}
