import { isatty } from 'node:tty'
import type { DestinationStream } from 'pino'
import type { Environment } from './config/setting.ts'

type LogFormat = 'pretty' | 'json'

/** Lines for people on a terminal, JSON for everything else. */
export function defaultLogFormat (): LogFormat {
  return isatty(1) ? 'pretty' : 'json'
}

/** Whether a terminal in this environment shows colors. */
export function hasColor (env: Environment): boolean {
  return !env['NO_COLOR'] && env['TERM'] !== 'dumb'
}

/** Where pino writes: the output itself, or lines for people before it. */
export async function logDestination (format: LogFormat, output: DestinationStream, env: Environment): Promise<DestinationStream> {
  if (format === 'json') return output
  const { default: { prettyFactory } } = await import('pino-pretty')
  const write = prettyFactory({
    colorize: isatty(1) && hasColor(env),
    ignore: 'pid,hostname,reqId,bytes,client,route,url,method,status,ms',
    translateTime: 'SYS:HH:MM:ss.l',
    messageFormat: (fields, messageKey) => {
      const { method, url, status, ms, client } = fields
      const message = String(fields[messageKey])
      return status === undefined ? message : `${String(method)} ${String(url)} ${String(status)} ${String(ms)} ms ${String(client)}${message === 'request completed' ? '' : ` (${message})`}`
    }
  })
  return { write: (line) => { output.write(write(line)) } }
}
