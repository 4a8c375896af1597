import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4, SocketAddress } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { copyOf } from '../../core/shared/text.ts'

/** An IPv4 address that a socket for both families shows as IPv6. */
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

const MAYBE_MAPPED = /^[0:]+:ffff:/i

/** An address as proxies write it, with or without port and brackets. */
const WITH_PORT = /^(?:\[([^\]]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/

const SUBNET = /^([\da-f.:]+)(?:\/(\d{1,3}))?$/i

/** The peer's address. Behind a proxy this is the proxy's. */
export function peerOf ({ socket }: IncomingMessage): string {
  return plainAddress(socket.remoteAddress ?? '')
}

/** The address of the client, as trusted proxies report it: Fastify's `trustProxy` decides. Otherwise that of the peer. */
export function clientOf (request: FastifyRequest): string {
  const [, bracketed, withPort] = WITH_PORT.exec(request.ip ?? '') ?? []
  const address = bracketed ?? withPort ?? request.ip ?? ''
  // A copy, since limits keep addresses for long, and a header has 16 KB.
  return isIP(address) === 0 ? peerOf(request.raw) : copyOf(plainAddress(address))
}

/** Whether a text is an address, or one with the length of a prefix: `10.0.0.0/8`. */
export function isSubnet (text: string): boolean {
  const [, address = '', prefix] = SUBNET.exec(text) ?? []
  const family = isIP(address)
  return family !== 0 && (prefix === undefined || Number(prefix) <= (family === 4 ? 32 : 128))
}

/**
 * Tells whether an address is one of some, or in a network of theirs.
 * @param entries as `isSubnet` takes them
 */
export function createSubnets (entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const entry of entries) {
    const [, address = '', prefix] = SUBNET.exec(entry) ?? []
    const family = isIPv4(address) ? 'ipv4' : 'ipv6'
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }
  return (address) => isIP(address) !== 0 && list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
}

/** An address in the spelling of its family: an IPv4 address is never shown as IPv6. */
export function plainAddress (address: string): string {
  const dotted = MAPPED.exec(address)?.[1]
  if (dotted !== undefined || !MAYBE_MAPPED.test(address) || isIP(address) !== 6) return dotted ?? address
  // Some proxies write it in hex, which no socket shows.
  return MAPPED.exec(new SocketAddress({ address, family: 'ipv6' }).address)?.[1] ?? address
}

/** The network that counts as one client: an IPv4 address, or the first 64 bits of an IPv6 address. */
export function networkOf (address: string): string {
  if (!address.includes(':')) return address
  const [head = '', tail] = (address.split('%', 1)[0] ?? '').split('::')
  const groups = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  if (tail !== undefined) while (groups.length + last.length < 8) groups.push('0')
  return `${[...groups, ...last].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`
}
