import t from 'tap'
import { authorityOf, connectableHost, hostOf, isLoopback, isLoopbackOrigin, parseHost, parseOrigin } from '../../../src/http/request/hosts.ts'

t.test('hostOf takes the port and the brackets off an authority', (t) => {
  for (const [authority, host] of [
    ['A.Example:80', 'a.example'], ['a.example:', 'a.example'], ['[::1]:', '::1'], ['[2001:DB8::1]:8080', '2001:db8::1'], ['127.0.0.1', '127.0.0.1'],
    ['::1', undefined], ['[127.0.0.1]', undefined], ['[abc]', undefined], ['[::1', undefined], ['a b', undefined], ['', undefined], ['a:b', undefined],
    ['a@b', undefined], ['*', undefined]
  ] as const) t.equal(hostOf(authority), host, authority)
  t.end()
})

t.test('hostOf takes linear time', (t) => {
  t.equal(hostOf('a:'.repeat(100_000)), undefined)
  t.equal(hostOf(`[${':'.repeat(100_000)}`), undefined)
  t.end()
})

t.test('parseHost takes a host as somebody wrote it', (t) => {
  for (const [text, host] of [
    ['Example.org:8080', 'example.org'], ['::1', '::1'], ['[::1]:80', '::1'], ['10.0.0.1', '10.0.0.1'], ['localhost', 'localhost'], ['FE80::1', 'fe80::1'],
    ['256.1.1.1', undefined], ['127.1', '127.0.0.1'], ['http://a.example', undefined], ['', undefined]
  ] as const) t.equal(parseHost(text), host, text)
  t.end()
})

t.test('an authority has brackets around IPv6 addresses only', (t) => {
  t.equal(authorityOf('::1'), '[::1]')
  t.equal(authorityOf('example.org'), 'example.org')
  t.end()
})

t.test('one can listen on a wildcard address, and connects to loopback', (t) => {
  t.strictSame(['0.0.0.0', '::', '10.0.0.1'].map(connectableHost), ['127.0.0.1', '::1', '10.0.0.1'])
  t.end()
})

t.test('loopback is what no resolver takes for something else', (t) => {
  for (const host of ['localhost', '127.0.0.1', '127.255.0.1', '::1']) t.ok(isLoopback(host), host)
  for (const host of ['localhost.', '127.1', '127.0.0.256', '127.example', '[::1]', '::ffff:127.0.0.1', '0.0.0.0', '128.0.0.1']) t.notOk(isLoopback(host), host)
  t.end()
})

t.test('parseOrigin gives what a browser sends', (t) => {
  for (const [text, origin] of [
    ['https://App.example:443', 'https://app.example'], ['http://localhost:5173', 'http://localhost:5173'], ['chrome-extension://abc', 'chrome-extension://abc'],
    ['https://app.example/', undefined], ['https://a@app.example', undefined], ['null', undefined], ['app.example', undefined], ['', undefined]
  ] as const) t.equal(parseOrigin(text), origin, text)
  t.end()
})

t.test('a loopback origin is a web page of this machine', (t) => {
  for (const origin of ['http://localhost:6274', 'https://127.0.0.1', 'http://[::1]:3000', 'HTTP://LOCALHOST']) t.ok(isLoopbackOrigin(origin), origin)
  for (const origin of ['https://evil.example', 'null', 'chrome-extension://localhost', 'http://localhost@evil.example', 'http://localhost/']) t.notOk(isLoopbackOrigin(origin), origin)
  t.end()
})
