import { type DestinationStream, type Logger, pino } from 'pino'

/** Needs no escape in JSON. */
const PLAIN = /^[ !#-[\]-~]*$/

/** pino, except that the lines of flat objects are put together here. */
export function createLogger (level: string, destination: DestinationStream): Logger {
  const members = new Map<string, string>()
  let head = ''
  let headLevel = 0
  let headTime = 0
  let headBindings = ''

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

  /** The line of a flat object; undefined for one that is not. */
  function flatLine (logger: Logger, level: number, fields: object | null, message: string): string | undefined {
    let line = headOf(logger, level)
    for (const key in fields) {
      const value: unknown = (fields as Record<string, unknown>)[key]
      switch (typeof value) {
        case 'undefined': break
        case 'number':
          line += memberOf(key) + (Number.isFinite(value) ? value : 'null')
          break
        case 'string':
          line += memberOf(key) + quoted(value)
          break
        default: return undefined
      }
    }
    return `${line},"msg":${quoted(message)}}\n`
  }

  /** What a line begins with: the same for the lines of a millisecond. */
  function headOf (logger: Logger, level: number): string {
    const time = Date.now()
    const bindings = (logger as Logger & Record<symbol, unknown>)[pino.symbols.chindingsSym] as string
    if (time !== headTime || level !== headLevel || bindings !== headBindings) {
      head = `{"level":${level},"time":${time}${bindings}`
      headTime = time
      headLevel = level
      headBindings = bindings
    }
    return head
  }

  /** `,"key":`; the keys are those of our own objects, and few. */
  function memberOf (key: string): string {
    let member = members.get(key)
    if (member === undefined) {
      member = `,${JSON.stringify(key)}:`
      members.set(key, member)
    }
    return member
  }
}

function quoted (text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)
}
