/** Logger of the core, a part of pino's interface. */
export interface CoreLog {
  info (details: object, message: string): void
  warn (details: object, message: string): void
}

export const SILENT: CoreLog = { info () {}, warn () {} }
