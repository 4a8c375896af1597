import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { promisify } from 'node:util'
import type { FastifyInstance } from 'fastify'
import { errorCode } from './core/shared/system-errors.ts'
import type { Config } from './config/settings.ts'
import { reasonOf } from './operator/files.ts'
import { ConfigError } from './operator/setting.ts'

/**
 * Checks that the port is free, before anything else is opened or announced.
 * @throws ConfigError if the service cannot listen there
 */
export async function checkPort ({ host, port }: Config): Promise<void> {
  if (port === 0) return
  const server = createServer()
  try {
    await once(server.listen({ host, port }), 'listening')
  } catch (error) {
    throw explainListenError(error, host, port)
  } finally {
    if (server.listening) await promisify(server.close.bind(server))()
  }
}

/**
 * Listens on the service's port, and logs a line for each address.
 * @returns the address
 * @throws ConfigError if the service cannot listen there
 */
export async function listen (app: FastifyInstance, { host, port, basePath }: Config): Promise<string> {
  try {
    return await app.listen({
      // For `localhost` Fastify would open a second server, without our tracking and limit of connections.
      host: host === 'localhost' ? (await lookup(host)).address : host,
      port,
      listenTextResolver: (address) => `skillserve listening at ${address}${basePath}`
    })
  } catch (error) {
    throw explainListenError(error, host, port)
  }
}

/** Converts an error of a port into a message for the operator. */
export function explainListenError (
  error: unknown, host: string, port: number, [hostSetting, portSetting] = ['HOST or --host', 'PORT or --port']
): unknown {
  const code = errorCode(error)
  if (code === '') return error
  const sentence = code === 'EADDRINUSE'
    ? `port ${port} of ${host} is already in use; choose another with ${portSetting} (0: any free port)`
    : `cannot listen on port ${port} of ${host} (${reasonOf(error)}); choose others with ${portSetting}, ${hostSetting}`
  return new ConfigError(sentence, { cause: error })
}
