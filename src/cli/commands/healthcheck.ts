import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { authorityOf, connectableHost, parseHost, parseListenHost } from '../../http/request/hosts.ts'
import { ConfigError, type Environment } from '../../operator/setting.ts'
import type { RunCommand } from '../command.ts'

const TIMEOUT_MS = 3_000

interface Flags {
  readonly host?: string | undefined
  readonly port?: string | undefined
  readonly basePath?: string | undefined
}

/** Asks the configured service whether it is ready. */
export const run: RunCommand<Flags> = async ({ options }, { env }) => {
  await checkReadiness(options, env)
  return 0
}

/**
 * Reads its settings itself: loading the table of settings takes longer than the request.
 * @throws ConfigError when the service does not answer, or is not ready
 */
export async function checkReadiness (flags: Flags, env: Environment): Promise<void> {
  const host = flags.host ?? (env['HOST'] || '127.0.0.1')
  const port = flags.port ?? (env['PORT'] || '8080')
  const basePath = (flags.basePath ?? env['BASE_PATH'] ?? '').replace(/\/$/, '')
  if (Number(port) === 0) {
    throw new ConfigError('port 0 takes any free port: set --port (PORT) to the port in the log of the service')
  }
  const hostname = connectableHost(parseListenHost(host) ?? host)
  const [allowedHost = ''] = env['ALLOWED_HOSTS']?.split(',') ?? []
  // The zone of an address belongs to this machine, and not to the header (RFC 6874 §4).
  const headers = { host: authorityOf(parseHost(allowedHost.trim()) ?? hostname.replace(/%.*$/, '')) }
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  try {
    const request = get({ host: hostname, port, path: `${basePath}/readyz`, headers, agent: false, signal })
    const [response] = await once(request, 'response') as [IncomingMessage]
    const body = await text(response)
    if (response.statusCode === 200) return
    const { detail } = JSON.parse(body.startsWith('{') ? body : '{}') as { readonly detail?: unknown }
    const reason = typeof detail === 'string' ? `: ${detail}` : ''
    throw new ConfigError(`GET /readyz answered ${response.statusCode}${reason}`)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const remedy = 'check --host, --port and --base-path'
    throw new ConfigError(`GET /readyz has no answer: ${error instanceof Error ? error.message : ''}; ${remedy}`)
  }
}
