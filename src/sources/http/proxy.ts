import { once } from 'node:events'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type Socket } from 'node:net'
import { connect } from 'node:tls'
import { errorCode } from '../../core/shared/system-errors.ts'
import type { Environment } from '../../operator/setting.ts'
import { hostOf } from '../address/address.ts'
import { SourceError } from '../source-error.ts'
import { basic } from '../secrets.ts'

/** Returns the proxy that the usual variables name for a URL; none for `http:`, which is for this machine only. */
export function proxyOf ({ protocol, hostname, port }: URL, env: Environment): URL | undefined {
  const valueOf = (name: string): string => env[name.toLowerCase()] || env[name] || ''
  const text = valueOf('HTTPS_PROXY') || valueOf('ALL_PROXY')
  const isExempt = valueOf('NO_PROXY').toLowerCase().split(/[\s,]+/).filter(Boolean).some((entry) => {
    const [, name = '', only] = /^(?:\*?\.)?(.*?)(?::(\d+))?$/.exec(entry) ?? []
    return entry === '*' || (`.${hostname}`.endsWith(`.${name}`) && (only ?? (port || '443')) === (port || '443'))
  })
  if (protocol !== 'https:' || text === '' || isExempt) return undefined
  const address = text.includes('://') ? text : `http://${text}`
  if (URL.canParse(address) && /^https?:/.test(address)) return new URL(address)
  throw new SourceError('unreachable', 'the proxy in the environment is not an http:// or https:// address')
}

/** Connects to an https address through a proxy. */
export async function tunnel (url: URL, proxy: URL, signal: AbortSignal): Promise<Socket> {
  const { username, password, protocol } = proxy
  const path = `${url.hostname}:${url.port || 443}`
  const { authorization } = basic(decodeURIComponent(username), decodeURIComponent(password))
  const headers = { host: path, ...username !== '' && { 'proxy-authorization': authorization } }
  const start = protocol === 'https:' ? requestHttps : requestHttp
  const asked = start(proxy, { method: 'CONNECT', path, headers, signal, agent: false }).end()
  const answer = once(asked, 'connect') as Promise<[IncomingMessage, Socket]>
  const [{ statusCode = 0 }, socket] = await answer.catch((error: unknown) => {
    if (errorCode(error) !== 'ECONNREFUSED') throw error
    throw new SourceError('unreachable', `connection refused by the proxy ${proxy.host}`)
  })
  // TLS takes names only, and no addresses (RFC 6066 §3).
  const host = hostOf(url)
  const options = { socket, host, ...isIP(host) === 0 && { servername: host }, ALPNProtocols: ['http/1.1'] }
  if (statusCode === 200) return connect(options)
  socket.destroy()
  throw new SourceError('unreachable', `the proxy does not connect to the host: it answers with status ${statusCode}`)
}
