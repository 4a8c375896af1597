import { ConfigError } from '../../operator/setting.ts'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { authorityOf, connectableHost } from '../../http/request/hosts.ts'
import type { RunCommand } from '../command.ts'

const TIMEOUT_MS = 3_000

/** Asks the configured service whether it is ready. */
export const run: RunCommand = async ({ options }, { env, cwd }) => {
  const { loadConfig } = await import('../../config/load.ts')
  await checkReadiness(loadConfig({ options: { ...options }, env, cwd }))
  return 0
}

interface Service {
  readonly host: string
  readonly port: number
  readonly basePath: string
  readonly allowedHosts?: readonly string[] | undefined
}

/** @throws ConfigError when the service does not answer, or is not ready */
export async function checkReadiness ({ host, port, basePath, allowedHosts }: Service): Promise<void> {
  if (port === 0) {
    throw new ConfigError('port 0 takes any free port: set --port (PORT) to the port in the log of the service')
  }
  const hostname = connectableHost(host)
  // The zone of an address belongs to this machine, and not to the header (RFC 6874 §4).
  const headers = { host: authorityOf(allowedHosts?.[0] ?? hostname.replace(/%.*$/, '')) }
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
