import Negotiator from 'negotiator'

/** Longest `Accept` header that is parsed, in characters. Browsers send about 150. */
const MAX_ACCEPT_CHARACTERS = 1024

/** Parameters other than a weight: `application/json; charset=utf-8` asks for JSON. */
const PARAMETERS = /;(?!\s*q\s*=)[^;,]*/gi

function negotiator (accept: string): Negotiator {
  return new Negotiator({ headers: { accept: accept.replace(PARAMETERS, '') } })
}

/** Whether an `Accept` header allows a media type: for the one route where nothing else can be sent. */
export function accepts (accept: string | undefined, type: string): boolean {
  return accept === undefined || accept === '' || accept.length > MAX_ACCEPT_CHARACTERS ||
    negotiator(accept).mediaType([type]) !== undefined
}

/** Whether a header names the type itself: a browser takes any type, and has no use for an endless answer. */
export function names (accept: string | undefined, type: string): boolean {
  return accept !== undefined && accept.length <= MAX_ACCEPT_CHARACTERS &&
    negotiator(accept).mediaTypes().some((named) => named.toLowerCase() === type)
}

/**
 * The media type of `available` that an `Accept` header prefers. The first is the default. It counts for no header,
 * when nothing fits (only `accepts` leads to 406), and for a header that is longer than any honest one.
 */
export function prefers<T extends string> (accept: string | undefined, available: readonly [T, ...T[]]): T {
  const [fallback] = available
  if (accept === undefined || accept === '*/*' || accept.length > MAX_ACCEPT_CHARACTERS) return fallback
  const preferred = negotiator(accept).mediaType(available)
  return available.find((type) => type === preferred) ?? fallback
}

/** Whether a request is one of a browser that opens an address. Programs, which take anything, get JSON. */
export function prefersPage ({ headers }: { readonly headers: { readonly accept?: string | undefined } }): boolean {
  return prefers(headers.accept, ['application/json', 'text/html']) === 'text/html'
}
