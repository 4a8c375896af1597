import { createHash } from 'node:crypto'
import dns from 'node:dns'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AwsV4Signer } from 'aws4fetch'
import { openBucket } from '../../src/sources/s3/s3-source.ts'
import type { S3Source } from '../../src/sources/address/source-kind.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startServer } from '../helper/fault-server.ts'
import { skillText, textOf } from '../helper/skills.ts'
import { openSources, sourceAt } from '../helper/sources.ts'

const ACCESS_KEY = 'AKIDEXAMPLE'
const SECRET = 'hunter22-secret'
const PAGE = 3

interface Store {
  readonly url: string
  readonly objects: Map<string, string>
  readonly gets: string[]
  /** Called before each answer; true: it answered. */
  before: (request: IncomingMessage, response: ServerResponse, url: URL) => boolean
}

function etagOf (content: string): string {
  return `"${createHash('md5').update(content).digest('hex')}"`
}

/** A bucket that keeps the protocol's rules: signatures, pages, conditions. */
async function startStore (t: Test): Promise<Store> {
  const objects = new Map<string, string>()
  const store: Store = { url: '', objects, gets: [], before: () => false }
  const server = await startServer(t, (request, response) => {
    const url = new URL(request.url ?? '', store.url)
    if (store.before(request, response, url)) return
    void answer(request, response, url)
  })

  async function answer (request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    if (!await isSigned(request, url)) {
      response.writeHead(403).end('<Error><Code>SignatureDoesNotMatch</Code></Error>')
      return
    }
    if (url.searchParams.get('list-type') === '2') {
      list(response, url)
      return
    }
    const key = decodeURIComponent(url.pathname.slice('/bucket/'.length))
    store.gets.push(key)
    const content = objects.get(key)
    if (content === undefined) response.writeHead(404).end()
    else if (request.headers['if-none-match'] === etagOf(content)) response.writeHead(304).end()
    else if (request.headers['if-match'] !== undefined &&
      request.headers['if-match'] !== etagOf(content)) response.writeHead(412).end()
    else response.setHeader('etag', etagOf(content)).end(content)
  }

  function list (response: ServerResponse, url: URL): void {
    const keys = [...objects.keys()].filter((key) => key.startsWith(url.searchParams.get('prefix') ?? '')).sort()
    const start = Number(url.searchParams.get('continuation-token') ?? 0)
    const page = keys.slice(start, start + PAGE).map(
      (key) =>
        `<Contents><Key>${encodeURIComponent(key)}</Key><ETag>&quot;${etagOf(objects.get(key) ?? '').slice(1, -1)}&quot;</ETag><Size>${Buffer.byteLength(objects.get(key) ?? '')}</Size></Contents>`).join('')
    const more = start + PAGE < keys.length
    response.end(
      `<?xml version="1.0"?><ListBucketResult><EncodingType>url</EncodingType><IsTruncated>${String(more)}</IsTruncated>${more ? `<NextContinuationToken>${start + PAGE}</NextContinuationToken>` : ''}${page}</ListBucketResult>`)
  }

  return Object.assign(store, { url: server.url })
}

/** Signs the request again, from what arrived. */
async function isSigned (request: IncomingMessage, url: URL): Promise<boolean> {
  const names = /SignedHeaders=([^,]+)/.exec(request.headers.authorization ?? '')?.[1]?.split(';') ?? []
  const headers =
    Object.fromEntries(names.filter((name) => name !== 'host').map((name) => [name, String(request.headers[name])]))
  const signer = new AwsV4Signer({
    url: url.href,
    method: 'GET',
    accessKeyId: ACCESS_KEY,
    secretAccessKey: SECRET,
    service: 's3',
    region: 'us-east-1',
    headers,
    datetime: String(request.headers['x-amz-date']),
    allHeaders: true
  })
  return (await signer.sign()).headers.get('authorization') === request.headers.authorization
}

function sourceOf (t: Test, store: Store, more: object = {}) {
  const secretFile = join(t.testdirName, 'secret')
  writeFileSync(secretFile, SECRET)
  return sourceAt('s3://bucket/team', { endpoint: store.url, auth: { username: ACCESS_KEY, secretFile }, ...more })
}

async function open (t: Test, store: Store, more: object = {}) {
  t.testdir()
  return await openSources(t, [sourceOf(t, store, more)])
}

function fill (store: Store): void {
  for (const name of ['a', 'b', 'c']) store.objects.set(`team/skills/${name}/SKILL.md`, skillText(name))
  store.objects.set('team/skills/a/notes & more.txt', 'one')
  store.objects.set('other/skills/x/SKILL.md', skillText('x'))
}

t.test('K83: a prefix of a bucket, of which only what changed is fetched', async (t) => {
  const store = await startStore(t)
  fill(store)
  const { skills, sources, status } = await open(t, store)
  t.match(status(), { state: 'ok', skills: 3 })
  t.equal(await textOf(() => skills.read('a', (skill) => skill.file('notes & more.txt'))), 'one')
  const before = store.gets.length
  await sources.sync()
  t.equal(store.gets.length, before, 'nothing new is a listing')
  store.objects.set('team/skills/b/SKILL.md', skillText('b', 'Other.\n'))
  store.objects.delete('team/skills/c/SKILL.md')
  await sources.sync()
  t.strictSame(store.gets.slice(before), ['team/skills/b/SKILL.md'])
  t.strictSame(await skills.list(), ['a', 'b'])
})

t.test('K85: half of an upload is not served with a marker, and one that is not in the bucket is named', async (t) => {
  const store = await startStore(t)
  fill(store)
  const { skills, sources, status } = await open(t, store, { marker: '.revision' })
  t.match(status(), { state: 'failed', error: { code: 'not_found', message: 'the marker is not in the bucket' } })
  const document = () => textOf(() => skills.read('a', (skill) => skill.mainFile('SKILL.md')))
  for (const [revision, text] of [['1', 'First.'], ['1', 'Half.'], ['2', 'Half.']] as const) {
    store.objects.set('team/.revision', revision)
    store.objects.set('team/skills/a/SKILL.md', skillText('a', `${text}\n`))
    await sources.sync()
    t.match(await document(), revision === '1' ? /First/ : /Half/)
  }
})

t.test('K83: a secret without the id of its key ends the start', async (t) => {
  const secretFile = join(t.testdir({ secret: SECRET }), 'secret')
  await t.rejects(openSources(t, [sourceAt('s3://bucket/team', { name: 'team', auth: { secretFile } })]),
    { message: 'the source team needs auth.username: the id of the access key' })
})

t.test('K85: a bucket that changes while it is read, lists wrong or refuses keeps the last state', async (t) => {
  const store = await startStore(t)
  fill(store)
  const { sources, status, log } = await open(t, store)
  const faults: ReadonlyArray<readonly [string, Store['before']]> = [
    ['changing', (_, __, url) => {
      if (url.pathname.endsWith('SKILL.md')) {
        store.objects.set('team/skills/b/SKILL.md', skillText('b', `${Math.random()}\n`))
      }
      return false
    }],
    ['bad_answer',
      (_, response) => Boolean(response.end('<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>'))],
    ['bad_answer',
      (_, response) => Boolean(response.end('<ListBucketResult><Contents><Key>x</Key></Contents></ListBucketResult>'))],
    ['bad_answer',
      (_,
        response) => Boolean(
        response.end(
          '<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken></ListBucketResult>'))],
    ['bad_answer',
      (_,
        response) => Boolean(
        response.end(
          '<ListBucketResult><Contents><Key>other/SKILL.md</Key><ETag>"1"</ETag><Size>1</Size></Contents></ListBucketResult>'))],
    ['bad_answer',
      (_,
        response) => Boolean(
        response.end(
            `<ListBucketResult>${'<Contents><Key>team/x/SKILL.md</Key><ETag>"1"</ETag><Size>1</Size></Contents>'.repeat(2)}</ListBucketResult>`))],
    ['bad_answer', (_, response) => Boolean(response.end('<ListBucketResult>busy</ListBucketResult>'))],
    ['bad_answer', (_, response) => Boolean(response.end('<ListBucketResult/><ListBucketResult/>'))],
    ['bad_answer', (_, response) => Boolean(response.end('<html><br>Sign in</html'))],
    // A proxy that breaks off says the same as one that has sent all.
    ...['', '<IsTruncated>false</IsTruncated>',
      '<Contents><Key>team/skills/a/SKILL.md</Key><ETag>"1"</ETag><Size>1</Size></Contents>'].map((begin) =>
      ['bad_answer',
        (_, response) =>
          Boolean(
            response.end(
              `<?xml version="1.0"?><ListBucketResult>${begin}`))] as const satisfies readonly [string, Store['before']]),
    ['changing',
      (_, response, url) => url.pathname.endsWith('SKILL.md') &&
        Boolean(response.setHeader('etag', '"1"').end('other bytes than those of the size that was listed'))],
    ['auth_failed', (_, response) => Boolean(response.writeHead(403).end(SECRET))],
    ['unreachable', (_, response) => Boolean(response.writeHead(503).end())]
  ]
  for (const [index, [code, before]] of faults.entries()) {
    store.objects.set('team/skills/b/SKILL.md', skillText('b', `Number ${index}.\n`))
    store.before = before
    await sources.sync()
    t.match(status(), { state: 'stale', skills: 3, error: { code } }, code)
  }
  t.notMatch(JSON.stringify([log, sources.status]), /hunter22/)
  store.before = () => false
  await sources.sync()
  const replica = await openSources(t, [sourceOf(t, store)], { stateDir: join(t.testdirName, 'replica') })
  t.match(replica.status(), { state: 'ok', revision: status().revision }, 'another replica has the same revision')
})

t.test('K85: a refusal has the code that the service gives as its reason, and nothing else of ' +
  'what it says', async (t) => {
  const store = await startStore(t)
  fill(store)
  const { sources, status, log } = await open(t, store)
  const unnamed = 'the host refuses the credentials'
  for (const [answer, body, code, message] of [
    [403, '<?xml version="1.0"?>\n<Error><Code>RequestTimeTooSkewed</Code><Message>CANARY</Message></Error>',
      'auth_failed', 'the host refuses the request: RequestTimeTooSkewed'],
    [401, '<Error><Code>InvalidAccessKeyId</Code></Error>', 'auth_failed',
      'the host refuses the request: InvalidAccessKeyId'],
    [400, '<Error><Code>ExpiredToken</Code></Error>', 'bad_answer', 'the host refuses the request: ExpiredToken'],
    [403, '<Error><Code>CANARY https://canary.example</Code></Error>', 'auth_failed', unnamed],
    [403, `<Error><Code>${'CANARY'.repeat(20)}</Code></Error>`, 'auth_failed', unnamed],
    [403, `${' '.repeat(100_000)}<Error><Code>CANARY</Code></Error>`, 'auth_failed', unnamed],
    [403, '', 'auth_failed', unnamed]
  ] as const) {
    store.before = (_, response) => Boolean(response.writeHead(answer).end(body))
    await sources.sync()
    t.match(status(), { state: 'stale', error: { code, message } }, message)
  }
  store.before = (_, response) => {
    response.writeHead(403).write('<Error>')
    setImmediate(() => { response.destroy() })
    return true
  }
  await sources.sync()
  t.match(status(), { error: { code: 'auth_failed', message: unnamed } }, 'a body that breaks off')
  t.notMatch(JSON.stringify([log, sources.status]), /CANARY/)
  t.match(JSON.stringify(log), /RequestTimeTooSkewed/)
})

t.test('K85: keys that no folder holds are left out one by one, and named', async (t) => {
  const store = await startStore(t)
  fill(store)
  for (const key of [`team/skills/a/${'n'.repeat(256)}`, 'team/skills/a//x', 'team/../x', 'team/skills/a/../y',
    'team/skills/b', 'team/skills/c/', `team/skills/a/${'d/'.repeat(20)}x`]) {
    store.objects.set(key, key.endsWith('/') ? '' : 'x')
  }
  const { status } = await open(t, store)
  t.match(status(), { state: 'ok', skills: 3, left_out: { count: 6 } })
})

t.test('K85: an object that is too large is left out for its size, and not for its name', async (t) => {
  const store = await startStore(t)
  fill(store)
  store.before = (_, response, url) => url.searchParams.has('list-type') &&
    Boolean(response.end(`<ListBucketResult><IsTruncated>false</IsTruncated>${[
    ['team/skills/a/SKILL.md', Buffer.byteLength(skillText('a'))], ['team/skills/a/model.bin', 50 * 1_048_576 + 1], ['team/skills/a/../y', 50 * 1_048_576 + 1]
  ].map(([key, size]) => `<Contents><Key>${key}</Key><ETag>${etagOf(skillText('a')).replaceAll('"', '&quot;')}</ETag><Size>${size}</Size></Contents>`).join('')}</ListBucketResult>`))
  const { status } = await open(t, store)
  t.match(status(), {
    state: 'ok',
    skills: 1,
    left_out: {
      count: 2,
      first: [{ path: 'team/skills/a/../y', reason: 'unsafe_name' },
        { path: 'team/skills/a/model.bin', reason: 'bound_reached' }]
    }
  })
})

t.test('K85: a listing whose keys and tags are longer than any honest one is not kept in memory', async (t) => {
  const store = await startStore(t)
  let keys = 0
  store.before = (_, response) => {
    const entries = Array.from({ length: 500 },
      () => `<Contents><Key>team/${'k'.repeat(16_000)}${keys++}</Key><ETag>"1"</ETag><Size>1</Size></Contents>`)
    return Boolean(
      response.end(
        `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>${keys}</NextContinuationToken>${entries.join('')}</ListBucketResult>`))
  }
  const { status } = await open(t, store)
  t.match(status(), {
    state: 'failed', error: { code: 'too_large', message: /a listing of more than 134217728 bytes/ }
  })
})

t.test('K83: the region of a bucket is that of the variable, and us-east-1 when it is unset or empty', async (t) => {
  const lookup = t.capture(dns, 'lookup',
    (_host: string, _options: object, done: (error: Error) => void) => { done(new Error('there is no network')) })
  for (const env of [{}, { AWS_REGION: '' }, { AWS_REGION: 'eu-west-1' }]) {
    const bucket = await openBucket(sourceAt('s3://bucket/team') as S3Source, env, AbortSignal.timeout(60_000))
    await t.rejects(bucket.list('team/'))
  }
  t.strictSame(lookup().map(({ args: [host] }) => host),
    ['s3.us-east-1.amazonaws.com', 's3.us-east-1.amazonaws.com', 's3.eu-west-1.amazonaws.com'])
})

t.test('K85: a listing that lacks objects makes no skill go until another one says the same, and one that ' +
  'contradicts itself is refused', async (t) => {
  const store = await startStore(t)
  fill(store)
  const { sources, status, skills } = await open(t, store)
  const { revision } = status()
  const listed = [...store.objects.keys()].filter((key) => key.startsWith('team/')).sort().map(
    (key) =>
      `<Contents><Key>${encodeURIComponent(key)}</Key><ETag>${etagOf(store.objects.get(key) ?? '')}</ETag><Size>${Buffer.byteLength(store.objects.get(key) ?? '')}</Size></Contents>`)
  const [first = '', notes = '', , ...rest] = listed
  let isFirst = true
  const pages: ReadonlyArray<readonly [what: string, code: string, page: () => string]> = [
    ['whole the next time', 'changing', () => {
      const page = isFirst ? [first, notes, ...rest] : listed
      isFirst = false
      return `<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>${page.join('')}`
    }],
    ['no word of whether it ends', 'bad_answer', () => `<EncodingType>url</EncodingType>${first}`],
    ['neither yes nor no', 'bad_answer', () => `<EncodingType>url</EncodingType><IsTruncated>1</IsTruncated>${first}`]
  ]
  for (const [what, code, page] of pages) {
    store.before = (_, response, url) =>
      url.searchParams.has('list-type') && Boolean(response.end(`<ListBucketResult>${page()}</ListBucketResult>`))
    await sources.sync()
    t.match(status(), { state: 'stale', revision, skills: 3, error: { code } }, what)
    t.strictSame(await skills.list(), ['a', 'b', 'c'], what)
  }
  store.before = () => false
  for (const key of store.objects.keys()) if (key.startsWith('team/skills/b/')) store.objects.delete(key)
  await sources.sync()
  t.match(status(), { state: 'ok', skills: 2 }, 'what is gone twice is gone')
})
