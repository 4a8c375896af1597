import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import type { Environment } from '../../config/setting.ts'
import { SourceError } from '../source-error.ts'

/** The proxy for an address, by the usual variables in both cases; undefined for a direct connection. */
export function proxyOf (url: URL, env: Environment): URL | undefined {
  const valueOf = (name: string): string => env[name.toLowerCase()] || env[name] || ''
  const text = valueOf(url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY') || valueOf('ALL_PROXY')
  if (text === '' || valueOf('NO_PROXY').split(/[\s,]+/).some((entry) => isExempt(url, entry))) return undefined
  const address = text.includes('://') ? text : `http://${text}`
  if (URL.canParse(address) && /^https?:$/.test(new URL(address).protocol)) return new URL(address)
  throw new SourceError('unreachable', 'the proxy in the environment is not an http:// or https:// address')
}

/** @param entry `*`, a host with the names below it, `host:port` */
function isExempt ({ hostname, port, protocol }: URL, entry: string): boolean {
  const [, host = '', wanted] = /^(?:\*?\.)?(\[.*\]|[^:]*)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
  const own = port || (protocol === 'https:' ? '443' : '80')
  if (entry === '*') return true
  return host !== '' && (wanted ?? own) === own && (hostname === host || hostname.endsWith(`.${host}`))
}

/** Headers with the credentials of a proxy, if its address has some. */
export function proxyHeaders ({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '') return {}
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(text).toString('base64')}` }
}

/** A connection to an https address through a proxy. */
export async function tunnel (url: URL, proxy: URL, signal: AbortSignal): Promise<TLSSocket> {
  const path = `${url.hostname}:${url.port || 443}`
  const start = proxy.protocol === 'https:' ? requestHttps : request
  const headers = { host: path, ...proxyHeaders(proxy) }
  const asked = start(proxy, { method: 'CONNECT', path, headers, signal, agent: false })
  asked.end()
  const [{ statusCode = 0 }, socket] = await once(asked, 'connect') as [IncomingMessage, Socket]
  if (statusCode === 200) return connect({ socket, servername: url.hostname, ALPNProtocols: ['http/1.1'] })
  socket.destroy()
  throw new SourceError('unreachable', `the proxy does not connect to the host: it answers with status ${statusCode}`)
}
