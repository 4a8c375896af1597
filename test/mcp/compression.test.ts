import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { buildService } from '../helper/build.ts'
import { modernRequest } from '../helper/mcp.ts'
import { skill } from '../helper/skills.ts'

t.test('K49: a large answer over MCP is compressed for whoever asks, and a small one is not', async (t) => {
  const service = await buildService(t, { files: { demo: skill('demo', { 'large.txt': 'text '.repeat(1_000), 'small.txt': 'small' }) } })
  const ask = async (file: string, encoding: string) => {
    const message = { method: 'resources/read', params: { uri: `skill://demo/${file}` } }
    const { url, app } = service
    const response = await app.inject({
      url: `${url}/mcp`, method: 'POST', headers: { ...modernRequest(message).headers as Record<string, string>, 'accept-encoding': encoding }, payload: String(modernRequest(message).body)
    })
    return { encoding: response.headers['content-encoding'], vary: response.headers.vary, bytes: response.rawPayload }
  }
  const plain = await ask('large.txt', 'identity')
  t.match(plain, { encoding: undefined, vary: /accept-encoding/i })
  const gzip = await ask('large.txt', 'gzip')
  t.equal(gzip.encoding, 'gzip')
  t.strictSame(JSON.parse(gunzipSync(gzip.bytes).toString()), JSON.parse(plain.bytes.toString()))
  t.match(await ask('small.txt', 'gzip'), { encoding: undefined })
})
