const DATE = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d))?$/

/** When a token or link expires, in milliseconds since 1970; undefined for a date that does not exist. */
export function parseExpiry (text: string): number | undefined {
  const time = DATE.test(text) ? Date.parse(text) : NaN
  // V8 takes 30 February for 2 March.
  const day = new Date(`${text.slice(0, 10)}T00:00Z`).getUTCDate()
  return Number.isNaN(time) || day !== Number(text.slice(8, 10)) ? undefined : time
}
