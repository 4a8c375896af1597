import fc from 'fast-check'
import t from 'tap'
import { buildService, type Files } from '../helper/build.ts'
import { createFaultyDisk, osError } from '../helper/disk.ts'
import { until } from '../helper/skills.ts'

const link = (target: string) => t.fixture('symlink', target)

const FILES: Files = {
  demo: {
    'SKILL.md': '# Demo\n',
    docs: { 'é.md': 'é\n', '.env.example': 'x' },
    'logo.png': Buffer.from([0x89, 0x50, 0, 1]),
    '.env': 'x',
    '.git': { config: 'x' },
    folder: {},
    inside: link('docs/é.md'),
    out: link('../empty'),
    passwd: link('/etc/passwd'),
    dangling: link('nothing'),
    all: link('.')
  },
  'Crème "b%" (1)': { 'SKILL.md': 'x' },
  empty: {}
}

const PATH = '/skills/demo/archive.zip'

/** Names in the central directory. */
function namesIn (zip: Buffer): string[] {
  const names: string[] = []
  for (let at = zip.readUInt32LE(zip.length - 6); zip.readUInt32LE(at) === 0x02014b50;) {
    const length = zip.readUInt16LE(at + 28)
    names.push(zip.toString('utf8', at + 46, at + 46 + length))
    at += 46 + length
  }
  return names
}

t.test('one service', async (t) => {
  const service = await buildService(t, { files: FILES })

  t.test('K45: every file of the manifest, the main file at the root, or all in one folder', async (t) => {
    const { files } = (await service.fetch('/skills/demo/files')).json() as { files: ReadonlyArray<{ path: string }> }
    const paths = files.map(({ path }) => path)
    t.strictSame(paths, ['SKILL.md', 'docs/.env.example', 'docs/é.md', 'inside', 'logo.png'])
    for (const query of ['', '?wrap=false']) {
      const response = await service.fetch(PATH + query)
      t.equal(response.status, 200)
      t.equal(response.headers.get('content-type'), 'application/zip')
      t.equal(response.headers.get('content-length'), String(response.bytes.length))
      t.equal(response.headers.get('cache-control'), 'no-cache')
      t.equal(response.headers.get('x-content-type-options'), 'nosniff')
      t.equal(response.headers.get('content-disposition'), 'attachment; filename="demo.zip"')
      t.same(namesIn(response.bytes), paths)
    }
    const wrapped = await service.fetch(`${PATH}?wrap=true`)
    t.same(namesIn(wrapped.bytes), paths.map((path) => `demo/${path}`))
  })

  t.test('K45: the name of the skill is that of the download, whatever it is', async (t) => {
    const name = 'Crème "b%" (1)'
    const response = await service.fetch(`/skills/${encodeURIComponent(name)}/archive.zip?wrap=true`)
    t.equal(response.headers.get('content-disposition'), 'attachment; filename="Crème \\"b%\\" (1).zip"')
    t.same(namesIn(response.bytes), [`${name}/SKILL.md`])
    t.equal((await service.fetch('/skills/empty/archive.zip')).bytes.length, 22)
  })

  t.test('K45: any range is that part of the whole', async (t) => {
    const { bytes, headers } = await service.fetch(PATH)
    const size = bytes.length
    const position = fc.nat(size - 1)
    await fc.assert(fc.asyncProperty(position, position, async (a, b) => {
      const [start, end] = a < b ? [a, b] : [b, a]
      for (const range of [`bytes=${start}-${end}`,
        ...end === size - 1 ? [`bytes=${start}-`, `bytes=-${size - start}`] : []]) {
        const response = await service.fetch(PATH, { headers: { range, 'if-range': headers.get('etag') ?? '' } })
        t.strictSame([response.status, response.headers.get('content-range')], [206, `bytes ${start}-${end}/${size}`])
        t.ok(response.bytes.equals(bytes.subarray(start, end + 1)), range)
      }
    }), { numRuns: 40, examples: [[0, 3], [50, size - 1], [size - 22, size - 1]] })
    const beyond = await service.fetch(PATH, { headers: { range: `bytes=${size}-` } })
    t.equal(beyond.status, 416)
    t.equal(beyond.headers.get('content-range'), `bytes */${size}`)
    t.equal(beyond.headers.get('content-disposition'), null)
  })

  t.test('K48: what is no skill, and other methods', async (t) => {
    t.match((await service.fetch('/skills/nope/archive.zip')).json(), { status: 404, code: 'skill_not_found' })
    t.match((await service.fetch('/skills/..%2Fdemo/archive.zip')).json(), { status: 400, code: 'invalid_skill_name' })
    t.equal((await service.fetch(PATH, { method: 'POST' })).status, 405)
    t.equal((await service.fetch('/skills/demo/archive.tar.gz')).status, 404)
  })
})

t.test('K53: what fails before the first byte is a problem like any other', async (t) => {
  let reads = 0
  let fails = false
  const disk = createFaultyDisk({
    intercept: (call, _path, file) => {
      if (call !== 'read' || !file.endsWith('/a')) return
      reads++
      if (fails) throw osError('EIO')
    }
  })
  const service = await buildService(t,
    { files: { demo: { a: 'a', z: 'one' } }, options: { disk, keep: { keepMs: 0 } } })
  // Once the file is old enough for its checksum to be kept.
  await until(async () => {
    reads = 0
    await service.fetch(PATH, { method: 'HEAD' })
    return reads === 0
  })
  fails = true
  t.equal((await service.fetch(PATH, { method: 'HEAD' })).status, 200, 'nothing is read for a HEAD')
  const response = await service.fetch(PATH)
  t.equal(response.status, 500)
  t.match(response.json(), { code: 'file_io_error', error: "Cannot read file 'a': I/O error" })
  for (const name of ['etag', 'content-disposition', 'accept-ranges']) t.equal(response.headers.get(name), null, name)
  t.equal(response.headers.get('content-length'), String(response.bytes.length))
})
