import { isatty } from 'node:tty'
import { type DestinationStream, type Logger, pino } from 'pino'
import type { Environment } from './operator/setting.ts'

declare module 'sonic-boom' {
  /** Signature for the content mode `buffer`, which the package's types omit. */
  interface SonicBoom {
    write (line: Buffer): boolean
  }
}

type LogFormat = 'pretty' | 'json'

/** Bytes and milliseconds after which collected lines are written together. */
const MIN_BYTES = 32_768
const FLUSH_MS = 100

/** Most bytes of one write: as many as a pipe holds. */
const MAX_WRITE_BYTES = 65_536

/** Most bytes waiting to be written, a few seconds of lines under full load; further lines are dropped. */
const MAX_BYTES = 8 * 1_024 * 1_024

/** How long the end of the process waits for a slow reader of the log, in milliseconds. */
const END_MS = 500

/** How long closing a file may take to write its last lines, in milliseconds. */
const CLOSE_MS = 10_000

/** Duration after which a write counts as a problem, in milliseconds. */
const SLOW_MS = 2_000

interface LineOutputOptions {
  /** Descriptor of an open file, closed by `end`; default: standard output. */
  readonly fd?: number
  /** Called with the number of dropped lines, once lines can be written again. */
  readonly onDropped: (lines: number) => void
}

/** An output for lines that never blocks: if its reader hangs or the disk is full, lines are dropped. */
export interface LineOutput extends DestinationStream {
  /** The number of lines that were dropped since the start. */
  readonly dropped: number
  /** Error code if lines cannot be written, or `slow`. */
  readonly problem: string | undefined
  /** Starts to write waiting lines immediately. */
  flush (): void
  /** Writes waiting lines and closes the file. Resolves with the number of lines that may be lost. */
  end (): Promise<number>
}

export function openLineOutput ({ fd = 1, onDropped }: LineOutputOptions): LineOutput {
  let dropped = 0
  let reported = 0
  let error: string | undefined
  let waitingSince: number | undefined
  /** Lines added since most of the queue was last written. */
  let waiting = 0
  let endsAt = Number.POSITIVE_INFINITY
  const isSlow = (): boolean => waitingSince !== undefined && performance.now() - waitingSince > SLOW_MS
  const problem = (): string | undefined => error ?? (isSlow() ? 'slow' : undefined)
  // Runs before pino's own handler, which would retry for ever on a full disk.
  const finish = (): void => {
    endsAt = performance.now() + END_MS
    try {
      if (problem() === undefined) destination.flushSync()
    } catch {
      // The reader is too slow.
    }
    destination.destroy()
  }
  process.prependOnceListener('exit', finish)
  const destination = pino.destination({
    dest: fd,
    sync: false,
    // In text mode sonic-boom would measure the whole queue again for each line.
    contentMode: 'buffer',
    minLength: MIN_BYTES,
    maxWrite: MAX_WRITE_BYTES,
    maxLength: MAX_BYTES,
    periodicFlush: FLUSH_MS,
    retryEAGAIN: () => performance.now() < endsAt
  })
  destination.on('drop', () => { dropped++ })
  // Bytes that could not be written are tried again at the next flush.
  destination.on('error', (reason: NodeJS.ErrnoException) => { error = reason.code ?? reason.message })
  destination.once('close', () => { process.off('exit', finish) })
  destination.on('write', (bytes: number) => {
    if (bytes > 0) error = waitingSince = undefined
  })
  destination.on('drain', () => {
    waiting = 0
    const lines = dropped - reported
    reported = dropped
    if (lines > 0) onDropped(lines)
  })
  return {
    get dropped () { return dropped },
    get problem () { return problem() },
    write: (line) => {
      waiting++
      waitingSince ??= performance.now()
      destination.write(Buffer.from(line))
    },
    flush: () => { destination.flush() },
    end: async () => {
      let lost = 0
      // On a full disk, closing would never finish.
      const timer = setTimeout(() => {
        lost = waiting
        destination.destroy()
      }, CLOSE_MS).unref()
      const closed = new Promise<number>((resolve) => {
        destination.once('close', () => {
          clearTimeout(timer)
          resolve(lost)
        })
      })
      destination.end()
      return await closed
    }
  }
}

interface Log {
  readonly logger: Logger
  readonly output: LineOutput
}

/** @param format default: pretty on a terminal */
export async function openLog (level: string, env: Environment, format?: LogFormat): Promise<Log> {
  const output = openLineOutput({
    onDropped: (lines) => { logger.warn({ lines }, 'log lines were dropped: standard output is too slow') }
  })
  const isPretty = format === undefined ? isatty(1) : format === 'pretty'
  const logger = pino({ level }, isPretty ? await prettyLines(output, env) : output)
  return { logger, output }
}

/** Whether a terminal in this environment shows colors. */
export function hasColor (env: Environment): boolean {
  return !env['NO_COLOR'] && env['TERM'] !== 'dumb'
}

async function prettyLines (output: DestinationStream, env: Environment): Promise<DestinationStream> {
  const { default: { prettyFactory } } = await import('pino-pretty')
  const format = prettyFactory({
    colorize: isatty(1) && hasColor(env),
    ignore: 'pid,hostname,reqId,bytes,client,route,url,method,status,ms',
    translateTime: 'SYS:HH:MM:ss.l',
    messageFormat: (fields, messageKey) => {
      const { method, url, status, ms, client } = fields
      const message = String(fields[messageKey])
      if (status === undefined) return message
      const note = message === 'request completed' ? '' : ` (${message})`
      return `${String(method)} ${String(url)} ${String(status)} ${String(ms)} ms ${String(client)}${note}`
    }
  })
  return { write: (line) => { output.write(format(line)) } }
}
