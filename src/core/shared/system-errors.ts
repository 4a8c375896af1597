/** The code of an operating system error, '' for anything else. */
export function errorCode (error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** An error as the operating system reports it. */
export function systemError (code: string, text: string): Error {
  return Object.assign(new Error(`${code}: ${text}`), { code })
}
