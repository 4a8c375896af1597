import { loadConfig, settingFlags, settingsWithoutValue } from '../config/load.ts'
import type { Config } from '../config/settings.ts'
import { authorityOf, connectableHost } from '../http/request/hosts.ts'
import { type Command, CommandError } from './command.ts'

/** Longest wait for the answer, in milliseconds. */
const TIMEOUT_MS = 3_000

/** For a container's health check: with the settings of the service, it finds the service. */
export const healthcheck: Command = {
  summary: 'asks a running service whether it is ready',
  flags: settingFlags(),
  optionalFlags: settingsWithoutValue(),
  details: () => `Asks GET /readyz at the host and port that the flags and the environment of serve name.
Exits with 0 when the service is ready; with 1 and a line that says why when it is not, or does not answer within ${TIMEOUT_MS / 1000} s.
`,
  async run ({ flags }, { env, cwd }) {
    const status = await askReadiness(loadConfig({ positionals: [], flags, env, cwd }))
    if (status !== 200) throw new CommandError(`GET /readyz answered ${status}`)
    return 0
  }
}

/** @throws CommandError when there is no answer */
async function askReadiness ({ host, port, basePath, allowedHosts }: Config): Promise<number | undefined> {
  const { get } = await import('node:http')
  const hostname = connectableHost(host)
  const name = allowedHosts?.[0] ?? hostname
  return await new Promise((resolve, reject) => {
    get({
      host: hostname,
      port,
      path: `${basePath}/readyz`,
      headers: { host: authorityOf(name) },
      agent: false,
      signal: AbortSignal.timeout(TIMEOUT_MS)
    }, (response) => {
      response.destroy()
      resolve(response.statusCode)
    }).on('error', (error) => { reject(new CommandError(error.message)) })
  })
}
