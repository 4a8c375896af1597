import axios from 'axios'
import t from 'tap'
import { buildService } from '../../helper/build.ts'
import { skill } from '../../helper/skills.ts'

const BYTES = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 0xff])

t.test('K44: axios, which prefers JSON and takes everything, reads files of every kind', async (t) => {
  const service = await buildService(t,
    { files: { demo: skill('demo', { 'a.md': 'text', 'logo.png': BYTES, 'large.txt': 'x'.repeat(10_485_761) }) } })
  const client = axios.create({ baseURL: `${service.url}/skills/demo` })

  t.match((await client.get('/files/a.md')).data, { success: true, content: 'text', encoding: 'utf-8' },
    'text inside JSON')
  const logo = await client.get<ArrayBuffer>('/files/logo.png', { responseType: 'arraybuffer' })
  t.same(Buffer.from(logo.data), BYTES, 'bytes')
  t.equal(logo.headers['content-type'], 'image/png')
  t.equal((await client.get<string>('/files/large.txt')).data.length, 10_485_761, 'too large for JSON')
  t.match((await client.get('/files/logo.png', { params: { encoding: 'base64' } })).data,
    { content: BYTES.toString('base64') })

  const head = await client.head('/files/logo.png')
  t.match({ ...head.headers }, {
    'content-type': 'image/png', 'content-length': '8', etag: logo.headers['etag'], vary: /Accept/i
  })
  const again = await client.get('/files/logo.png',
    { headers: { 'if-none-match': String(logo.headers['etag']) }, validateStatus: null })
  t.equal(again.status, 304)
  const part = await client.get<ArrayBuffer>('/files/logo.png',
    { headers: { range: 'bytes=1-3' }, responseType: 'arraybuffer' })
  t.same([part.status, Buffer.from(part.data).toString()], [206, 'PNG'])

  for (const [accept, status] of [['application/json', 422], ['application/json, image/*', 200],
    ['application/json, text/plain', 422]] as const) {
    t.equal((await client.get('/files/logo.png', { headers: { accept }, validateStatus: null })).status, status, accept)
  }
  t.equal((await client.get('/files/nope.png', { validateStatus: null })).status, 404)
})
