import { get } from 'node:http'
import { text } from 'node:stream/consumers'
import { loadConfig } from '../../config/load.ts'
import { authorityOf, connectableHost } from '../../http/request/hosts.ts'
import { CommandError, type RunCommand } from '../command.ts'

/** Longest wait for the answer, in milliseconds. */
const TIMEOUT_MS = 3_000

/** For a container's health check: with the settings of the service, it finds the service. */
export const run: RunCommand = async ({ options }, { env, cwd }) => {
  const { host, port, basePath, allowedHosts } = loadConfig({ options: { ...options }, env, cwd })
  if (port === 0) {
    throw new CommandError('a service with port 0 takes any free port: PORT or --port names the one that its log has')
  }
  const hostname = connectableHost(host)
  const { status, body } = await ask({
    host: hostname,
    port,
    path: `${basePath}/readyz`,
    // The zone of an address belongs to this machine, and not to the header (RFC 6874 §4).
    headers: { host: authorityOf(allowedHosts?.[0] ?? hostname.replace(/%.*$/, '')) }
  })
  if (status === 200) return 0
  const { detail } = JSON.parse(body.startsWith('{') ? body : '{}') as { readonly detail?: unknown }
  throw new CommandError(`GET /readyz answered ${status}${typeof detail === 'string' ? `: ${detail}` : ''}`)
}

/** @throws CommandError when there is no answer */
async function ask (
  options: { readonly host: string, readonly port: number, readonly path: string, readonly headers: { host: string } }
): Promise<{ readonly status: number | undefined, readonly body: string }> {
  return await new Promise((resolve, reject) => {
    get({ ...options, agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) }, (response) => {
      text(response).then((body) => { resolve({ status: response.statusCode, body }) }, reject)
    }).on('error', ({ message }) => {
      const remedy = 'HOST, PORT and BASE_PATH, or their flags, say where the service is'
      reject(new CommandError(`GET /readyz has no answer: ${message}; ${remedy}`))
    })
  })
}
