import type { IncomingMessage } from 'node:http'
import fc from 'fast-check'
import t from 'tap'
import { createClientOf, createSubnets, isSubnet, networkOf } from '../../../src/http/request/client-address.ts'
import { heapOfEach } from '../../helper/memory.ts'

function requestFrom (remoteAddress: string, forwarded?: string): IncomingMessage {
  return { socket: { remoteAddress }, headers: { ...forwarded !== undefined && { 'x-forwarded-for': forwarded } } } as IncomingMessage
}

t.test('K67: the client is the last address that no trusted proxy has', async (t) => {
  const clientOf = createClientOf(['10.0.0.0/8', '::1', 'fd00::/8'])
  for (const [peer, forwarded, client] of [
    ['10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['10.0.0.1', '6.6.6.6, 203.0.113.7', '203.0.113.7'],
    ['10.0.0.1', '6.6.6.6, 203.0.113.7, 10.2.3.4', '203.0.113.7'],
    ['::ffff:10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['10.0.0.1', '::ffff:203.0.113.7', '203.0.113.7'],
    ['10.0.0.1', '::ffff:cb00:7107', '203.0.113.7'],
    ['10.0.0.1', '6.6.6.6, 0:0:0:0:0:ffff:0a02:0304', '6.6.6.6'],
    ['::1', '"unknown", 10.9.9.9', '10.9.9.9'],
    ['10.0.0.1', '2001:db8::7', '2001:db8::7'],
    ['10.0.0.1', '[2001:db8::7]:4711', '2001:db8::7'],
    ['10.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
    ['10.0.0.1', '', '10.0.0.1'],
    ['10.0.0.1', 'unknown', '10.0.0.1'],
    ['10.0.0.1', '10.1.1.1, 10.2.2.2', '10.1.1.1'],
    ['203.0.113.9', '6.6.6.6', '203.0.113.9'],
    ['203.0.113.9', '10.0.0.1', '203.0.113.9'],
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['::ffff:203.0.113.9', undefined, '203.0.113.9']
  ] as const) t.equal(clientOf(requestFrom(peer, forwarded)), client, `${peer} ${forwarded}`)
  t.equal(createClientOf([])(requestFrom('127.0.0.1', '6.6.6.6')), '127.0.0.1')
})

t.test('K67: no header of a peer that is not trusted changes its address, and no header throws', async () => {
  const clientOf = createClientOf(['10.0.0.0/8'])
  fc.assert(fc.property(fc.oneof(fc.string(), fc.ipV4(), fc.ipV6(), fc.string({ unit: fc.constantFrom(...'0123456789.:,[] f') })), (text) => {
    const behind = clientOf(requestFrom('10.0.0.1', text))
    return clientOf(requestFrom('192.0.2.1', text)) === '192.0.2.1' && typeof behind === 'string' && behind !== ''
  }))
})

t.test('K67: one customer is an IPv4 address, or a /64', async (t) => {
  for (const [address, network] of [
    ['203.0.113.7', '203.0.113.7'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:db8:0:0:ffff::2', '2001:db8:0:0::/64'],
    ['2001:db8:0:1::1', '2001:db8:0:1::/64'],
    ['2001:0db8:00a0:1:2:3:4:5', '2001:db8:a0:1::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64']
  ] as const) t.equal(networkOf(address), network)
})

t.test('addresses and subnets are told from other texts', async (t) => {
  for (const text of ['10.0.0.0/8', '10.0.0.1', '10.0.0.1/32', '::1', 'fd00::/8', '0.0.0.0/0', '2001:db8::/128']) t.ok(isSubnet(text), text)
  for (const text of ['', '10.0.0.0/33', '::1/129', '10.0.0', 'localhost', '10.0.0.0/x', '10.0.0.1:80', '1', '10.0.0.0/8/8']) t.notOk(isSubnet(text), text)
})

t.test('K62: addresses are in the networks that entries name, and no other text is', async (t) => {
  const isIn = createSubnets(['10.0.0.0/8', '192.0.2.1', 'fe80::/10', '::1'])
  for (const address of ['10.255.0.1', '::ffff:10.0.0.1', '192.0.2.1', 'fe80::1', '::1']) t.ok(isIn(address), address)
  for (const address of ['11.0.0.1', '192.0.2.2', '::2', '', 'localhost', '10.0.0.1:80']) t.notOk(isIn(address), address)
})

t.test('K67: an address that is kept keeps nothing of the header that it stood in', async (t) => {
  const clientOf = createClientOf(['10.0.0.1'])
  const ofEach = heapOfEach(1_000, (i) => clientOf(requestFrom('10.0.0.1', Buffer.from(`${'x'.repeat(15_000)}, 203.0.113.${100 + i % 100}`).toString())))
  t.ok(ofEach < 1_000, `${ofEach} bytes`)
})
