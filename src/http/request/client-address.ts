import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'

/** The address of the client, behind trusted proxies too; a proxy that names none counts as the client. */
export function clientOf ({ ip, raw }: FastifyRequest): string {
  const address = withoutPort(ip)
  return isIP(address) === 0 ? peerOf(raw) : plainAddress(address)
}

/** An address of `X-Forwarded-For` without the port and the brackets that some proxies write. */
export function withoutPort (hop: string): string {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/.exec(hop) ?? []
  return bracketed ?? dotted ?? hop
}

/** The peer's address. Behind a proxy this is the proxy's. */
export function peerOf ({ socket }: IncomingMessage): string {
  return plainAddress(socket.remoteAddress ?? '')
}

/** An address in its one spelling: an IPv4 address that a socket for both families shows as IPv6 is IPv4. */
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

/** The network that counts as one client: an IPv4 address, or the first 64 bits of an IPv6 address. */
export function networkOf (address: string): string {
  const [plain = ''] = address.split('%', 1)
  return isIP(plain) === 6 ? `${ipaddr.IPv6.networkAddressFromCIDR(`${plain}/64`).toString()}/64` : address
}
