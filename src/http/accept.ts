import Negotiator from 'negotiator'

/** Longest `Accept` header that is looked into, in characters. Browsers send about 150. */
const MAX_ACCEPT_CHARACTERS = 1024

/** Parameters other than a weight: `application/json; charset=utf-8` asks for JSON. */
const PARAMETERS = /;(?!\s*q\s*=)[^;,]*/gi

/** Whether an `Accept` header allows a media type: for the one route where nothing else can be sent. */
export function accepts (accept: string | undefined, type: string): boolean {
  if (accept === undefined || accept === '' || accept === '*/*' || accept.length > MAX_ACCEPT_CHARACTERS) return true
  return new Negotiator({ headers: { accept: accept.replace(PARAMETERS, '') } }).mediaType([type]) !== undefined
}

/**
 * The media type of `offered` that an `Accept` header prefers. The first is the default: for no header, when nothing
 * fits (only `accepts` leads to 406), and for a header that is longer than any honest one.
 */
export function prefers<T extends string> (accept: string | undefined, offered: readonly [T, ...T[]]): T {
  const [fallback] = offered
  if (accept === undefined || accept === '*/*' || accept === fallback) return fallback
  const exact = offered.find((type) => type === accept)
  if (exact !== undefined) return exact
  if (accept.length > MAX_ACCEPT_CHARACTERS) return fallback
  const preferred = new Negotiator({ headers: { accept: accept.replace(PARAMETERS, '') } }).mediaType(offered)
  return offered.find((type) => type === preferred) ?? fallback
}
