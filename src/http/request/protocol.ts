import type { IncomingMessage } from 'node:http'
import { HttpProblem } from '../problem.ts'

const SLASH = 0x2f
const ABSOLUTE_TARGET = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i
const CLOSE = { connection: 'close' }

/**
 * What Node's parser lets pass although the service speaks HTTP/1.0 and 1.1 alone. A body in another coding than chunks would
 * be taken for what it encodes. A proxy in between might read another request there (RFC 9112 §6.1).
 */
export function protocolProblem ({ httpVersionMajor, headers, method }: IncomingMessage): HttpProblem | undefined {
  // Neither a line without a version nor the preface of HTTP/2 (RFC 9113 §3.4) is a request.
  if (httpVersionMajor === 0 || method === 'PRI') return new HttpProblem('bad_request', 'Send requests of HTTP/1.1', CLOSE)
  if (httpVersionMajor !== 1) return new HttpProblem('http_version_not_supported', undefined, CLOSE)
  const coding = headers['transfer-encoding']
  if (coding === undefined || coding.toLowerCase() === 'chunked') return undefined
  return new HttpProblem('transfer_encoding_unsupported', undefined, CLOSE)
}

/** The authority of a target in absolute form, which counts instead of `Host` (RFC 9112 §3.2.2); undefined for other targets. */
export function targetAuthority (target = '/'): string | undefined {
  return target.charCodeAt(0) === SLASH ? undefined : ABSOLUTE_TARGET.exec(target)?.[1]
}

/** Whether a header has several lines, of which Node keeps the first or joins all. @param name in lower case */
export function hasSeveral ({ rawHeaders }: IncomingMessage, name: string): boolean {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const header = rawHeaders[index]
    if (header?.length === name.length && header.toLowerCase() === name) count++
  }
  return count > 1
}
