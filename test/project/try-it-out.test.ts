import { cpSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { DiscoveryIndex } from '../../src/well-known/discovery.ts'
import { buildService } from '../helper/build.ts'
import { skill } from '../helper/skills.ts'

const EXAMPLES = fileURLToPath(new URL('../../skills/', import.meta.url))

interface Parameter {
  readonly name: string
  readonly in: string
  readonly example?: unknown
  readonly schema: { readonly default?: unknown }
}

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: {
    readonly content: Readonly<Record<string, {
      readonly examples: Readonly<Record<string, { readonly value: unknown }>>
    }>>
  }
}

t.test('K50: each request of /docs succeeds as it is filled in, with the example skills', async (t) => {
  const service = await buildService(t, { files: { single: skill('single') } })
  cpSync(EXAMPLES, service.root, { recursive: true })
  const document = (await service.fetch('/openapi.json')).json() as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  }
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
      t.notMatch(answer.text, /Invalid tool arguments|Unknown tool/, operationId)
    }
  }
})
