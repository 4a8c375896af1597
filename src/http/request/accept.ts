import Negotiator from 'negotiator'

function negotiator (accept: string): Negotiator {
  // Without parameters other than a weight: `application/json; charset=utf-8` asks for JSON.
  return new Negotiator({ headers: { accept: accept.replace(/;(?!\s*q\s*=)[^;,]*/gi, '') } })
}

/** Whether an `Accept` header allows a media type: for the one route where nothing else can be sent. */
export function accepts (accept: string | undefined, type: string): boolean {
  return !accept || negotiator(accept).mediaType([type]) !== undefined
}

/** The media type that an `Accept` header prefers. The first is the default, for when nothing fits too. */
export function prefers<T extends string> (accept: string | undefined, available: readonly [T, ...T[]]): T {
  const [fallback] = available
  if (accept === undefined || accept === '*/*') return fallback
  const preferred = negotiator(accept).mediaType(available)
  return available.find((type) => type === preferred) ?? fallback
}

/** Whether a request is one of a browser that opens an address. Programs, which take anything, get JSON. */
export function prefersPage ({ headers }: { readonly headers: { readonly accept?: string | undefined } }): boolean {
  return prefers(headers.accept, ['application/json', 'text/html']) === 'text/html'
}
