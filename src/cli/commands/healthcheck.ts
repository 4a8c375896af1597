import { get } from 'node:http'
import { loadConfig } from '../../config/load.ts'
import type { Config } from '../../config/settings.ts'
import { authorityOf, connectableHost } from '../../http/request/hosts.ts'
import { CommandError, type RunCommand } from '../command.ts'

/** Longest wait for the answer, in milliseconds. */
const TIMEOUT_MS = 3_000

/** For a container's health check: with the settings of the service, it finds the service. */
export const run: RunCommand = async (args, { env, cwd }) => {
  const { status, text } = await askReadiness(loadConfig({ ...args, env, cwd }))
  if (status === 200) return 0
  const reason = reasonIn(text)
  throw new CommandError(`GET /readyz answered ${status}${reason === undefined ? '' : `: ${reason}`}`)
}

/** @throws CommandError when there is no answer */
async function askReadiness (
  { host, port, basePath, allowedHosts }: Config
): Promise<{ readonly status: number, readonly text: string }> {
  if (port === 0) {
    throw new CommandError('a service with port 0 takes any free port: PORT or --port names the one that its log has')
  }
  const hostname = connectableHost(host)
  // The zone of an address belongs to this machine, and not to the header (RFC 6874 §4).
  const name = allowedHosts?.[0] ?? hostname.replace(/%.*$/, '')
  const headers = { host: authorityOf(name) }
  const path = `${basePath}/readyz`
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  return await new Promise((resolve, reject) => {
    get({ host: hostname, port, path, headers, agent: false, signal }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => { text = (text + part).slice(0, 65_536) })
      // An answer that is cut off has its status.
      response.on('error', () => {}).on('close', () => { resolve({ status: response.statusCode ?? 0, text }) })
    }).on('error', ({ message }) => {
      const remedy = 'HOST, PORT and BASE_PATH, or their flags, are those of the service'
      reject(new CommandError(`GET /readyz has no answer: ${message}; ${remedy}`))
    })
  })
}

/** What a problem says in words, on one line. Something else than the service may answer at this port. */
function reasonIn (text: string): string | undefined {
  try {
    const { detail } = JSON.parse(text) as { readonly detail?: unknown }
    return typeof detail === 'string' ? detail.replace(/\s+|\p{Cc}+/gu, ' ').trim() : undefined
  } catch {
    return undefined
  }
}
