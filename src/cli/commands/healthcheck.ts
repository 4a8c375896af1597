import { ConfigError } from '../../config/setting.ts'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { loadConfig } from '../../config/load.ts'
import { authorityOf, connectableHost } from '../../http/request/hosts.ts'
import type { RunCommand } from '../command.ts'

/** Longest wait for the answer, in milliseconds. */
const TIMEOUT_MS = 3_000

/** For a container's health check: with the settings of the service, it finds the service. */
export const run: RunCommand = async ({ options }, { env, cwd }) => {
  const { host, port, basePath, allowedHosts } = loadConfig({ options: { ...options }, env, cwd })
  if (port === 0) {
    throw new ConfigError('a service with port 0 takes any free port: PORT or --port names the one that its log has')
  }
  const hostname = connectableHost(host)
  // The zone of an address belongs to this machine, and not to the header (RFC 6874 §4).
  const headers = { host: authorityOf(allowedHosts?.[0] ?? hostname.replace(/%.*$/, '')) }
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  try {
    const request = get({ host: hostname, port, path: `${basePath}/readyz`, headers, agent: false, signal })
    const [response] = await once(request, 'response') as [IncomingMessage]
    const body = await text(response)
    if (response.statusCode === 200) return 0
    const { detail } = JSON.parse(body.startsWith('{') ? body : '{}') as { readonly detail?: unknown }
    const reason = typeof detail === 'string' ? `: ${detail}` : ''
    throw new ConfigError(`GET /readyz answered ${response.statusCode}${reason}`)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const remedy = 'HOST, PORT and BASE_PATH, or their flags, say where the service is'
    throw new ConfigError(`GET /readyz has no answer: ${error instanceof Error ? error.message : ''}; ${remedy}`)
  }
}
