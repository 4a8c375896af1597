import Negotiator from 'negotiator'

function negotiator (accept: string): Negotiator {
  // Removes parameters other than weights: `application/json; charset=utf-8` asks for JSON.
  return new Negotiator({ headers: { accept: accept.replace(/;(?!\s*q\s*=)[^;,]*/gi, '') } })
}

/** Whether an `Accept` header allows a media type, for the one route that has no other representation. */
export function accepts (accept: string | undefined, type: string): boolean {
  return !accept || negotiator(accept).mediaType([type]) !== undefined
}

/** Returns the type that an `Accept` header prefers; the first one if it accepts all or none of them. */
export function prefers<T extends string> (accept: string | undefined, available: readonly [T, ...T[]]): T {
  const [fallback] = available
  if (accept === undefined || accept === '*/*') return fallback
  const preferred = negotiator(accept).mediaType(available)
  return available.find((type) => type === preferred) ?? fallback
}

/** Whether `Accept` is that of a browser which opens a page. Programs, which accept any type, get JSON. */
export function prefersPage ({ headers }: { readonly headers: { readonly accept?: string | undefined } }): boolean {
  return prefers(headers.accept, ['application/json', 'text/html']) === 'text/html'
}
