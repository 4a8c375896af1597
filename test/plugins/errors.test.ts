import { Type } from '@sinclair/typebox'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t, { type Test } from 'tap'
import { mainFileError, fileError, folderError } from '../../src/core/shared/errors.ts'
import { HttpProblem, toProblem } from '../../src/http/problem.ts'
import { type Problem, ProblemSchema } from '../../src/schemas/problem.ts'
import { listenWithPlugins } from '../helper/plugin-app.ts'
import { jsonRequest, openRaw, type RawResponse, rawRequest, request } from '../helper/raw-http.ts'

const fitsSchema = new Ajv2020().compile(ProblemSchema)

/** The response as a problem, after the checks that every one must pass. */
function problemOf (t: Test, response: RawResponse): Problem {
  t.equal(response.headers['content-type'], 'application/problem+json')
  t.equal(response.headers['cache-control'], 'no-store')
  t.equal(response.headers['x-content-type-options'], 'nosniff')
  const problem = response.json()
  t.ok(fitsSchema(problem), 'the schema fits')
  const { type, status, code } = problem as Problem
  t.equal(status, response.status)
  t.equal(type, `urn:skillserve:problem:${code}`)
  return problem as Problem
}

t.test('K48: instance is the path as a URI reference, without origin, query and what no URI may hold', (t) => {
  for (const [url, instance] of [
    ['/skills/a%20b/files/x?y=1', '/skills/a%20b/files/x'],
    ['/a#b', '/a'],
    ['/%zz<script>"', '/%25zz%3Cscript%3E%22'],
    ['/%', '/%25'],
    ['http://evil.example/skills/x?y', '/skills/x'],
    ['/../..\\x', '/../..%5Cx']
  ] as const) t.equal(toProblem(new HttpProblem('bad_request'), url).instance, instance)
  t.end()
})

t.test('errors through a route', async (t) => {
  const errors: Record<string, unknown> = {
    skill: mainFileError.skillNotFound('x"\n'),
    folder: folderError.notFound('/srv/skills'),
    io: fileError.ioError('a.md', new Error('EIO: i/o error, read /srv/skills/a.md')),
    traversal: fileError.traversal(),
    http: new HttpProblem('range_not_satisfiable', 'The file has 10 bytes', { 'content-range': 'bytes */10' }),
    secret: new Error('password', { cause: new Error('hunter2') }),
    status: Object.assign(new Error('/srv/skills'), { statusCode: 409 }),
    odd: Object.assign(new Error('/srv/skills'), { statusCode: 200 }),
    string: 'thrown text',
    null: null
  }
  const { url, logged } = await listenWithPlugins(t, (app) => {
    app.get('/throw/:name', (request, reply) => {
      reply.header('etag', '"stale"').header('last-modified', 'now').type('text/plain')
      throw errors[(request.params as { name: string }).name]
    })
    app.get('/query', { schema: { querystring: Type.Object({ limit: Type.String({ pattern: '^\\d+$' }) }, { additionalProperties: false }) } }, () => 'ok')
    app.post('/json', { schema: { body: Type.Object({ name: Type.String() }) } }, () => ({}))
    app.get('/skills/:name', () => 'ok')
    app.get('/not-found', (_request, reply) => { reply.callNotFound() })
  })
  const get = async (t: Test, target: string) => problemOf(t, await rawRequest(url, request('GET', target)))

  t.test("K48: error holds the domain's own sentence, detail adds what to do next", async (t) => {
    t.match(await get(t, '/throw/skill?q=secret'), {
      title: 'Skill not found',
      status: 404,
      error: "Skill 'x\"\n' not found in skills folder",
      detail: /^Skill 'x"\n' not found in skills folder\. \S/,
      instance: '/throw/skill',
      code: 'skill_not_found',
      requestId: /./
    })
    t.match(await get(t, '/throw/traversal'), { status: 403, code: 'path_traversal' })
  })

  t.test('K48: 503 has Retry-After', async (t) => {
    const response = await rawRequest(url, request('GET', '/throw/folder'))
    t.match(problemOf(t, response), { status: 503, error: 'Skills folder not found at path: /srv/skills' })
    t.match(response.headers['retry-after'], /^\d+$/)
  })

  t.test('an error drops the headers of the answer that it replaces and brings its own', async (t) => {
    const response = await rawRequest(url, request('GET', '/throw/http'))
    t.match(problemOf(t, response), { status: 416, detail: 'The file has 10 bytes', error: 'The file has 10 bytes', code: 'range_not_satisfiable' })
    t.equal(response.headers['content-range'], 'bytes */10')
    t.equal(response.headers.etag, undefined)
  })

  t.test('K48: 500 says nothing of the inside, the log has everything', async (t) => {
    const response = await rawRequest(url, request('GET', '/throw/secret'))
    const problem = problemOf(t, response)
    t.match(problem, { status: 500, code: 'internal_error' })
    t.notMatch(response.text, /password|hunter2|Error:|\.ts/)
    const entry = await logged(({ reqId, level }) => reqId === problem.requestId && level === 50)
    t.match(entry, { msg: 'request failed', err: { message: /password.*hunter2/, stack: /errors\.test/ } })

    const io = await get(t, '/throw/io')
    t.match(io, { status: 500, error: "Cannot read file 'a.md': I/O error" })
    t.match(await logged(({ reqId, level }) => reqId === io.requestId && level === 50), { err: { message: /EIO/ } })
  })

  t.test('K48: a bad query is 400 bad_query and names the parameter, nothing is coerced', async (t) => {
    t.match(await get(t, '/query?limit=x'), { status: 400, code: 'bad_query', detail: /limit/ })
    t.match(await get(t, '/query?limit=1&limit=2'), { code: 'bad_query' })
    t.match(await get(t, '/query?limit=1&other=2'), { code: 'bad_query' })
    const body = problemOf(t, await rawRequest(url, jsonRequest('POST', '/json', { name: 5 })))
    t.match(body, { status: 400, code: 'bad_request', detail: /name must be string/ })
  })

  t.test('K48: a URL that is not UTF-8 is 400 bad_url', async (t) => {
    for (const path of ['%', '%zz', '%ff', '%c0%ae', '%e0%80%af', '%f0%80%80%af', '%ed%a0%80', '%u002e', '%zz<b>']) {
      const response = await rawRequest(url, request('GET', `/skills/${path}`))
      t.match(problemOf(t, response), { status: 400, code: 'bad_url', requestId: response.headers['x-request-id'] }, path)
      t.notMatch(response.text, /</)
    }
  })

  t.test('K47: unknown routes are 404, one spelling per route', async (t) => {
    for (const target of ['/', '//skills/demo', '/skills/demo/', '/SKILLS/demo', '/skills%2fdemo', '/skills;x=1/demo', '/skills../etc/passwd', '*', '/not-found']) {
      t.match(await get(t, target), { status: 404, code: 'route_not_found' }, target)
    }
  })

  t.test('K47: another method is 405 with Allow, HEAD included where GET is', async (t) => {
    for (const method of ['DELETE', 'PUT', 'PATCH', 'OPTIONS', 'TRACE', 'POST', 'PROPFIND', 'QUERY']) {
      const response = await rawRequest(url, request(method, '/skills/demo?x=1'))
      t.match(problemOf(t, response), { status: 405, code: 'method_not_allowed' }, method)
      t.equal(response.headers.allow, 'GET, HEAD')
    }
    const response = await rawRequest(url, request('GET', '/json'))
    t.equal(response.status, 405)
    t.equal(response.headers.allow, 'POST')
  })

  t.test('K47: HEAD has the status, the headers and no body of GET, errors included', async (t) => {
    for (const [target, status] of [['/skills/demo', 200], ['/throw/skill', 404], ['/nowhere', 404], ['/skills/%zz', 400], ['/throw/secret', 500]] as const) {
      const connection = await openRaw(url)
      const head = await connection.send(request('HEAD', target)).response({ head: true })
      const get = await connection.send(request('GET', target)).response()
      connection.destroy()
      t.equal(head.status, status, target)
      t.equal(get.status, status, 'and the connection is still in step')
      t.equal(head.headers['content-type'], get.headers['content-type'])
      if (status === 200) t.equal(head.headers['content-length'], get.headers['content-length'])
    }
  })

  t.test('a body that nobody wants is refused before it is read', async (t) => {
    for (const target of ['/skills/demo', '/json', '/nowhere']) {
      const connection = await openRaw(url)
      connection.send(request('POST', target, { headers: ['Content-Type: application/json', `Content-Length: ${2 ** 30}`] }))
      const response = await connection.response({ timeoutMs: 1000 })
      t.equal(response.status, { '/skills/demo': 405, '/json': 413, '/nowhere': 404 }[target])
      t.equal(response.headers.connection, 'close')
      await connection.closed()
    }
  })
})
