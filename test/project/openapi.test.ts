import { cpSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { load } from 'js-yaml'
import t from 'tap'
import { buildService } from '../helper/build.ts'
import { skill } from '../helper/skills.ts'
import { problems as codes } from '../../src/schemas/problem.ts'
import type { DiscoveryIndex } from '../../src/well-known/discovery.ts'

const ROOT = new URL('../../', import.meta.url)
const EXAMPLES = fileURLToPath(new URL('skills', ROOT))

interface MediaType {
  readonly schema?: object
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value?: unknown, readonly $ref?: string }>>
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly description?: string
  readonly example?: unknown
  readonly schema: { readonly default?: unknown }
}

interface Operation {
  readonly operationId?: string
  readonly summary?: string
  readonly description?: string
  readonly tags?: readonly string[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaType>> }
  readonly responses: Readonly<Record<string, {
    readonly description: string
    readonly content?: Readonly<Record<string, MediaType>>
  }>>
}

interface Document {
  readonly openapi: string
  readonly info: { readonly version: string }
  readonly tags: ReadonlyArray<{ readonly name: string }>
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly examples: Readonly<Record<string, { readonly value: object }>>
    readonly responses: Readonly<Record<string, { readonly content: Readonly<Record<string, MediaType>> }>>
  }
}

t.test('K50: one service', async (t) => {
  const service = await buildService(t, { files: { single: skill('single') } })
  cpSync(EXAMPLES, service.root, { recursive: true })
  const response = await service.fetch('/openapi.json')
  const document = response.json() as Document
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ place: `${method} ${path}`, path, operation })))

  t.test('K50: the document is OpenAPI 3.1, as JSON and as YAML', async (t) => {
    t.equal(document.openapi, '3.1.0')
    t.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
    const yaml = await service.fetch('/openapi.yaml')
    t.equal(yaml.headers.get('content-type'), 'application/yaml; charset=utf-8')
    t.same(load(yaml.text), document)
    t.notMatch(yaml.text, /[&*]a\d/, 'no YAML aliases, which many tools cannot read')
    const { version } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as { readonly version: string }
    t.equal(document.info.version, version)
  })

  t.test('K50: openapi/openapi.yaml is that document (if not: npm run openapi)', async (t) => {
    t.equal((await service.fetch('/openapi.yaml')).text, readFileSync(new URL('openapi/openapi.yaml', ROOT), 'utf8'))
  })

  t.test('K50: every operation has an id, texts, a tag and examples', (t) => {
    const tags = document.tags.map(({ name }) => name)
    const ids = operations.map(({ operation }) => operation.operationId)
    t.equal(new Set(ids).size, ids.length, 'ids are unique')
    for (const { place, path, operation } of operations) {
      const { operationId, summary, description, parameters = [], requestBody, responses } = operation
      t.match(operationId, /^[a-z]+[A-Z]\w+$/, place)
      t.ok(summary && description, place)
      const [tag = '', ...more] = operation.tags ?? []
      t.ok(more.length === 0 && tags.includes(tag), `${place}: one tag that is described`)
      const inPath = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name)
      t.same(inPath, [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name), place)
      for (const { name, required, description, example } of parameters) {
        t.ok(description, `${place}: parameter ${name}`)
        // /docs fills examples in: that of an optional parameter would be sent unasked.
        t.equal(example !== undefined, required, `${place}: an example of ${name} if it is required`)
      }
      for (const [type, media] of Object.entries(requestBody?.content ?? {})) {
        t.ok(hasExample(media), `${place}: body as ${type}`)
      }
      t.ok(responses['200'], `${place}: 200`)
      t.same(responses['4XX'], { $ref: '#/components/responses/RequestProblem' }, place)
      t.same(responses['5XX'], { $ref: '#/components/responses/ServiceProblem' }, place)
      for (const [status, { description, content = {} }] of Object.entries(responses)) {
        if (status.endsWith('XX')) continue
        t.ok(description, `${place}: ${status}`)
        for (const [type, media] of Object.entries(content)) t.ok(hasExample(media), `${place}: ${status} as ${type}`)
        if (status >= '4') t.same(Object.keys(content), ['application/problem+json'], `${place}: ${status}`)
      }
      const isKept = place.startsWith('get') && !['/events', '/livez', '/readyz'].includes(path)
      t.equal(responses['304'] !== undefined, isKept, `${place}: 304 on every GET that may be kept`)
    }
    t.end()
  })

  t.test('K50: the examples validate against their schemas', (t) => {
    // Few examples are held against each schema: see test/helper/openapi.ts.
    const ajv = new Ajv2020({ strict: false, validateSchema: false, inlineRefs: false, code: { optimize: false } })
    ajv.addSchema(document, 'openapi')
    // Most places have the schema of a problem.
    const validators = new Map<string, ValidateFunction>()
    for (const { place, path, operation } of operations) {
      const [method = ''] = place.split(' ')
      const base = `openapi#/paths/${escape(path)}/${method}`
      const contents = [
        ...Object.entries(operation.responses)
          .map(([status, { content = {} }]) => [`responses/${status}`, content] as const),
        ['requestBody', operation.requestBody?.content ?? {}] as const
      ]
      for (const [where, content] of contents) {
        for (const [type, { schema, examples = {} }] of Object.entries(content)) {
          const text = JSON.stringify(schema)
          const $schema = `${base}/${where}/content/${escape(type)}/schema`
          const validate = validators.get(text) ?? ajv.compile({ $ref: $schema })
          validators.set(text, validate)
          for (const [name, { value, $ref }] of Object.entries(examples)) {
            const shared = $ref?.split('/').at(-1) ?? ''
            const example = $ref === undefined ? value : document.components.examples[shared]?.value
            t.ok(validate(example), `${place} ${where} ${type} ${name}: ${ajv.errorsText(validate.errors)}`)
          }
        }
      }
    }
    const isProblem = ajv.getSchema('openapi#/components/schemas/Problem') as ValidateFunction
    const problems = Object.values(document.components.responses).flatMap(({ content }) =>
      Object.entries(content['application/problem+json']?.examples ?? {}))
    for (const [name, { value }] of problems) t.ok(isProblem(value), `${name}: ${ajv.errorsText(isProblem.errors)}`)
    t.same(problems.map(([name]) => name).sort(), Object.keys(codes).sort(), 'an example of each')
    t.end()
  })

  t.test('K50: /docs loads with all that it needs, under a policy without inline scripts', async (t) => {
    const page = await service.fetch('/docs')
    t.equal(page.status, 200)
    t.match(page.headers.get('content-type'), /^text\/html/)
    const policy = page.headers.get('content-security-policy') ?? ''
    const directives = Object.fromEntries(policy.split(';').map((directive) => {
      const [name = '', ...sources] = directive.trim().split(' ')
      return [name, sources]
    }))
    t.same(directives['script-src'], ["'self'"])
    t.same(directives['default-src'], ["'none'"])
    t.same(directives['connect-src'], ["'self'"])
    t.equal(directives['sandbox'], undefined)
    for (const [, attributes = '', code = ''] of page.text.matchAll(/<script([^>]*)>([^]*?)<\/script>/g)) {
      t.match(attributes, /\bsrc="/, 'no inline script')
      t.equal(code.trim(), '')
    }
    const addresses = page.text.matchAll(/(?:src|href)="([^"]+)"/g)
    const assets = Array.from(addresses, ([, url = '']) => new URL(url, `${service.url}/docs`))
    t.ok(assets.length >= 4)
    for (const { origin, pathname } of assets) {
      t.equal(origin, service.url, `${pathname}: nothing from elsewhere`)
      const asset = await service.fetch(pathname)
      t.equal(asset.status, 200, pathname)
      t.ok(asset.bytes.length > 0)
      t.equal(asset.headers.get('x-content-type-options'), 'nosniff')
      const headers = { 'if-none-match': asset.headers.get('etag') ?? '' }
      t.equal((await service.fetch(pathname, { headers })).status, 304, pathname)
    }
    const start = await service.fetch('/docs/static/swagger-initializer.js')
    t.match(start.headers.get('content-type'), /javascript/)
    const shown = (await service.fetch('/docs/json')).json() as Document
    t.strictSame(shown.paths, document.paths, 'the document that the page shows')
    t.match(shown, { info: { description: /^\[All skills\]\(\.\.\/\)/ } }, 'with a way back')
    t.match(shown, { security: [], components: { securitySchemes: undefined } }, 'and no locks without an access file')
    const missing = [
      '/docs/nope', '/docs/index.html', '/docs/../../package.json', '/docs/%2e%2e%2f%2e%2e%2fpackage.json',
      '/docs/..%5cpackage.json'
    ]
    for (const path of missing) {
      t.equal((await service.raw('GET', path)).status, 404, path)
    }
  })

  t.test('K50: each request of /docs succeeds as it is filled in, with the example skills', async (t) => {
    const index = (await service.fetch('/.well-known/agent-skills/index.json')).json() as DiscoveryIndex

    /** Of an address that names a digest: the one that the index lists, which no document can know. */
    function valuesFor (path: string): Readonly<Record<string, unknown>> {
      const end = path.slice(path.lastIndexOf('/'))
      const listed = index.skills.find(({ url }) => path.includes('{digest}') && url.endsWith(end))
      return listed === undefined ? {} : { name: listed.name, digest: listed.digest.slice('sha256:'.length) }
    }

    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, { operationId, parameters = [], requestBody }] of Object.entries(methods)) {
        const values = valuesFor(path)
        const query = new URLSearchParams()
        const headers: Record<string, string> = {}
        let target = path
        for (const { name, in: place, example, schema } of parameters) {
          const value = values[name] ?? example ?? schema.default
          if (place === 'path') target = target.replace(`{${name}}`, String(value))
          else if (value === undefined) continue
          else if (place === 'query') query.set(name, String(value))
          else headers[name] = String(value)
        }
        // An endless answer: its head says enough.
        const verb = operationId === 'followEvents' ? 'HEAD' : method.toUpperCase()
        const url = `${target}?${query}`.replace(/\?$/, '')
        if (operationId === 'gitHook') {
          t.equal((await service.fetch(url, { method: verb, headers })).status, 403, 'only a git host can sign')
          continue
        }
        if (requestBody === undefined) {
          t.equal((await service.fetch(url, { method: verb, headers })).status, 200, `${verb} ${url}`)
          continue
        }
        const [type = '', content] = Object.entries(requestBody.content)[0] ?? []
        const [first] = Object.values(content?.examples ?? {})
        const body = typeof first?.value === 'string' ? first.value : JSON.stringify(first?.value)
        const answer = await service.fetch(url, { method: verb, headers: { ...headers, 'content-type': type }, body })
        t.equal(answer.status, 200, `${verb} ${url}: ${answer.status === 200 ? '' : answer.text}`)
        t.notMatch(answer.text, /Invalid tool arguments|Unknown tool/, String(operationId))
      }
    }
  })
})

function hasExample ({ example, examples = {} }: MediaType): boolean {
  return example !== undefined || Object.keys(examples).length > 0
}

/** RFC 6901, inside a URI fragment. */
function escape (token: string): string {
  return encodeURIComponent(token.replaceAll('~', '~0').replaceAll('/', '~1'))
}
