/** Where the core tells what happened: object first, then a sentence. pino fits. */
export interface CoreLog {
  info (details: object, message: string): void
  warn (details: object, message: string): void
}

export const SILENT: CoreLog = { info () {}, warn () {} }
