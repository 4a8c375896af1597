import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { promisify } from 'node:util'
import type { FastifyInstance } from 'fastify'
import { errorCode } from './core/shared/system-errors.ts'
import type { Config } from './config/settings.ts'
import { ConfigError } from './operator/setting.ts'

/**
 * Checks that the port is free, before anything else is opened or announced.
 * @throws ConfigError if the service cannot listen there
 */
export async function checkPort ({ host, port }: Config, portSetting: string): Promise<void> {
  if (port === 0) return
  const server = createServer()
  try {
    await once(server.listen({ host, port }), 'listening')
  } catch (error) {
    throw explainListenError(error, port, host, portSetting, 'HOST or --host')
  } finally {
    if (server.listening) await promisify(server.close.bind(server))()
  }
}

/**
 * Listens on the service's port, and logs a line for each address.
 * @param portSetting the settings for another port, for errors
 * @returns the address
 * @throws ConfigError if the service cannot listen there
 */
export async function listen (app: FastifyInstance, config: Config, portSetting: string): Promise<string> {
  try {
    return await app.listen({
      // For `localhost` Fastify would open a second server, without our tracking and limit of connections.
      host: config.host === 'localhost' ? (await lookup(config.host)).address : config.host,
      port: config.port,
      listenTextResolver: (address) => `skillserve listening at ${address}${config.basePath}`
    })
  } catch (error) {
    throw explainListenError(error, config.port, config.host, portSetting, 'HOST or --host')
  }
}

/** Converts an error of a port into a message for the operator. */
export function explainListenError (
  error: unknown, port: number, host: string, portSetting: string, hostSetting: string
): unknown {
  switch (errorCode(error)) {
    case 'EADDRINUSE':
      return new ConfigError(
        `port ${port} of ${host} is already in use; choose another with ${portSetting} (0: any free port)`,
        { cause: error }
      )
    // The last two: an address of a family or of a link that the machine does not have, `::1` without IPv6 or
    // `fe80::1%nope`.
    case 'EADDRNOTAVAIL':
    case 'EAFNOSUPPORT':
    case 'EINVAL':
      return new ConfigError(
        `${host} is not an address of this machine; choose another with ${hostSetting}`, { cause: error }
      )
    case 'EACCES':
      return new ConfigError(
        `no permission to listen on port ${port} of ${host}; choose another with ${portSetting}`, { cause: error }
      )
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new ConfigError(`${host} cannot be resolved; choose another with ${hostSetting}`, { cause: error })
    default:
      return error
  }
}
