import fc from 'fast-check'
import { fastify } from 'fastify'
import t, { type Test } from 'tap'
import { clientOf, createSubnets, isSubnet, networkOf } from '../../../src/http/request/client-address.ts'

/** Asks an app of Fastify which client a request comes from. */
async function clientFor (t: Test, trustProxy: string[]) {
  const app = fastify({ trustProxy })
  app.get('/', async (request) => clientOf(request))
  t.teardown(() => app.close())
  return async (remoteAddress: string, forwarded?: string) =>
    (await app.inject({ url: '/', remoteAddress, headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded } })).payload
}

t.test('K67: the client is the last address that no trusted proxy has', async (t) => {
  const client = await clientFor(t, ['10.0.0.0/8', '::1', 'fd00::/8'])
  for (const [peer, forwarded, expected] of [
    ['10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['10.0.0.1', '6.6.6.6, 203.0.113.7', '203.0.113.7'],
    ['10.0.0.1', '6.6.6.6, 203.0.113.7, 10.2.3.4', '203.0.113.7'],
    ['::ffff:10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['10.0.0.1', '::ffff:203.0.113.7', '203.0.113.7'],
    ['10.0.0.1', '::ffff:cb00:7107', '203.0.113.7'],
    ['10.0.0.1', '2001:db8::7', '2001:db8::7'],
    ['10.0.0.1', 'unknown', '10.0.0.1'],
    ['10.0.0.1', '10.1.1.1, 10.2.2.2', '10.1.1.1'],
    ['203.0.113.9', '6.6.6.6', '203.0.113.9'],
    ['203.0.113.9', '10.0.0.1', '203.0.113.9'],
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['::ffff:203.0.113.9', undefined, '203.0.113.9']
  ] as const) t.equal(await client(peer, forwarded), expected, `${peer} ${forwarded}`)
})

t.test('K67: no header of a peer that is not trusted changes its address, and no header throws', async (t) => {
  const client = await clientFor(t, ['10.0.0.0/8'])
  const text = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string({ unit: fc.constantFrom(...'0123456789.:,[] f') }))
  await fc.assert(fc.asyncProperty(text, async (text) => {
    return await client('192.0.2.1', text) === '192.0.2.1' && await client('10.0.0.1', text) !== ''
  }))
})

t.test('K67: one customer is an IPv4 address, or a /64', async (t) => {
  for (const [address, network] of [
    ['203.0.113.7', '203.0.113.7'],
    ['2001:db8::1', '2001:db8::/64'],
    ['2001:db8:0:0:ffff::2', '2001:db8::/64'],
    ['2001:db8:0:1::1', '2001:db8:0:1::/64'],
    ['2001:0db8:00a0:1:2:3:4:5', '2001:db8:a0:1::/64'],
    ['::1', '::/64'],
    ['fe80::1%eth0', 'fe80::/64']
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
