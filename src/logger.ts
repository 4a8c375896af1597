import { type DestinationStream, type Logger, pino } from 'pino'

/** Lines are written together: up to this many characters, or this many milliseconds, wait for each other. */
const BUFFER_CHARACTERS = 8_192
const FLUSH_MS = 100

/** Needs no escape in JSON. */
const PLAIN = /^[ !#-[\]-~]*$/

/** pino, except that the lines of flat objects are put together here. */
export function createLogger (level: string, destination: DestinationStream): Logger {
  return pino({ level, hooks: { logMethod: writeFlatLine } }, destination)

  /**
   * Every request leaves a line, and every tool call two, of an object of numbers and strings and a message. pino's way
   * from that to text is made for anything at all, and takes a fifth of the time of a request; this gives the
   * same bytes (tested) for what is flat, and leaves the rest to pino.
   */
  function writeFlatLine (this: Logger, args: Parameters<pino.LogFn>, method: pino.LogFn, level: number): void {
    const [fields, message] = args as [unknown, unknown]
    const line = args.length === 2 && typeof message === 'string' && typeof fields === 'object' ? flatLine(this, level, fields, message) : undefined
    if (line === undefined) method.apply(this, args)
    else destination.write(line)
  }
}

/** The line of a flat object; undefined for one that is not. */
function flatLine (logger: Logger, level: number, fields: object | null, message: string): string | undefined {
  const bindings = (logger as Logger & Record<symbol, unknown>)[pino.symbols.chindingsSym] as string
  let line = `{"level":${level},"time":${Date.now()}${bindings}`
  for (const key in fields) {
    const value: unknown = (fields as Record<string, unknown>)[key]
    switch (typeof value) {
      case 'undefined': break
      case 'number':
        line += `,${quoted(key)}:${Number.isFinite(value) ? value : 'null'}`
        break
      case 'string':
        line += `,${quoted(key)}:${quoted(value)}`
        break
      default: return undefined
    }
  }
  return `${line},"msg":${quoted(message)}}\n`
}

function quoted (text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)
}

export interface LogOutput extends DestinationStream {
  /** Writes what waits, and returns when it is written. */
  flushSync (): void
}

/**
 * Standard output, written behind the back of the requests. Lines are put together before sonic-boom sees them: it
 * measures all that waits anew with each write, which for short lines is more work than making them.
 */
export function createLogOutput (): LogOutput {
  // Of strings it would count the bytes, twice. Its types know nothing but strings.
  const stdout = pino.destination({ sync: false, contentMode: 'buffer' }) as unknown as { write (bytes: Buffer): void, flushSync (): void }
  let lines = ''
  let timer: NodeJS.Timeout | undefined

  function flush (): void {
    clearTimeout(timer)
    timer = undefined
    if (lines === '') return
    stdout.write(Buffer.from(lines))
    lines = ''
  }

  return {
    write (line) {
      lines += line
      if (lines.length >= BUFFER_CHARACTERS) flush()
      else timer ??= setTimeout(flush, FLUSH_MS)
    },
    flushSync () {
      flush()
      stdout.flushSync()
    }
  }
}
