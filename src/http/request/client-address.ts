import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'

/** Returns the address of the client, also behind proxies. A proxy that sends none counts as the client. */
export function clientOf ({ ip, raw }: FastifyRequest): string {
  const address = withoutPort(ip)
  return isIP(address) === 0 ? peerOf(raw) : plainAddress(address)
}

/** Removes the port and the brackets that some proxies write around an address in `X-Forwarded-For`. */
export function withoutPort (hop: string): string {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/.exec(hop) ?? []
  return bracketed ?? dotted ?? hop
}

/** Returns the address of the peer; behind a proxy, that of the proxy. */
export function peerOf ({ socket }: IncomingMessage): string {
  return plainAddress(socket.remoteAddress ?? '')
}

/** Normalizes an address: IPv4-mapped IPv6, which dual-stack sockets report, becomes IPv4. */
export function plainAddress (address: string): string {
  return !isIPv6(address) || address.includes('%') ? address : ipaddr.process(address).toString()
}

/** Whether a text is an address, or one with the length of a prefix: `10.0.0.0/8`. */
export function isSubnet (text: string): boolean {
  if (text.includes('%')) return false
  return isIP(text) !== 0 || (ipaddr.isValidCIDR(text) && isIP(text.split('/', 1)[0] ?? '') !== 0)
}

/** Tells whether an address is in one of the networks. @param entries as `isSubnet` takes them */
export function createSubnets (entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', prefix] = entry.split('/')
    const family = isIPv4(address) ? 'ipv4' : 'ipv6'
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }
  return (address) => isIP(address) !== 0 && list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
}

/** Returns the network that counts as one client: an IPv4 address, or the first 64 bits of an IPv6 address. */
export function networkOf (address: string): string {
  const [plain = ''] = address.split('%', 1)
  return isIP(plain) === 6 ? `${ipaddr.IPv6.networkAddressFromCIDR(`${plain}/64`).toString()}/64` : address
}
