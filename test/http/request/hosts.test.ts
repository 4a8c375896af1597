import t from 'tap'
import { authorityOf, connectableHost, hostOf, isLoopback, isLoopbackOrigin, parseHost, parseOrigin } from '../../../src/http/request/hosts.ts'

const TABLES = {
  'the host of an authority, without port and brackets': [hostOf, [
    ['A.Example:80', 'a.example'], ['a.example:', 'a.example'], ['[::1]:', '::1'], ['[2001:DB8::1]:8080', '2001:db8::1'], ['127.0.0.1', '127.0.0.1'],
    ['::1', undefined], ['[127.0.0.1]', undefined], ['[abc]', undefined], ['[::1', undefined], ['a b', undefined], ['', undefined], ['a:b', undefined],
    ['a@b', undefined], ['*', undefined], ['a:'.repeat(100_000), undefined], [`[${':'.repeat(100_000)}`, undefined]
  ]],
  'a host as somebody wrote it': [parseHost, [
    ['Example.org:8080', 'example.org'], ['::1', '::1'], ['[::1]:80', '::1'], ['10.0.0.1', '10.0.0.1'], ['localhost', 'localhost'], ['FE80::1', 'fe80::1'],
    ['256.1.1.1', undefined], ['127.1', '127.0.0.1'], ['http://a.example', undefined], ['', undefined]
  ]],
  'an authority has brackets around IPv6 addresses only': [authorityOf, [['::1', '[::1]'], ['example.org', 'example.org']]],
  'one can listen on a wildcard address, and connects to loopback': [connectableHost, [['0.0.0.0', '127.0.0.1'], ['::', '::1'], ['10.0.0.1', '10.0.0.1']]],
  'loopback is what no resolver takes for something else': [isLoopback, [
    ...['localhost', '127.0.0.1', '127.255.0.1', '::1'].map((host) => [host, true] as const),
    ...['localhost.', '127.1', '127.0.0.256', '127.example', '[::1]', '::ffff:127.0.0.1', '0.0.0.0', '128.0.0.1'].map((host) => [host, false] as const)
  ]],
  'an origin as a browser sends it': [parseOrigin, [
    ['https://App.example:443', 'https://app.example'], ['http://localhost:5173', 'http://localhost:5173'], ['chrome-extension://abc', 'chrome-extension://abc'],
    ['https://app.example/', undefined], ['https://a@app.example', undefined], ['null', undefined], ['app.example', undefined], ['', undefined]
  ]],
  'a loopback origin is a web page of this machine': [isLoopbackOrigin, [
    ...['http://localhost:6274', 'https://127.0.0.1', 'http://[::1]:3000', 'HTTP://LOCALHOST'].map((origin) => [origin, true] as const),
    ...['https://evil.example', 'null', 'chrome-extension://localhost', 'http://localhost@evil.example', 'http://localhost/'].map((origin) => [origin, false] as const)
  ]]
} satisfies Record<string, readonly [(text: string) => unknown, ReadonlyArray<readonly [text: string, result: unknown]>]>

for (const [name, [read, rows]] of Object.entries(TABLES)) {
  t.test(`K55: ${name}`, async (t) => {
    for (const [text, result] of rows) t.equal(read(text), result, text.slice(0, 40))
  })
}
