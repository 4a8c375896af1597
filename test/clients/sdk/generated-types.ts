import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { load } from 'js-yaml'
import t from 'tap'
import type Typescript from 'typescript'

// An import looks through the 9 MB of the compiler for what they export.
const require = createRequire(import.meta.url)
const { default: openapiTS, astToString } = require('openapi-typescript') as typeof import('openapi-typescript')
const ts = require('typescript') as typeof Typescript

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** A program that uses the generated types; the comments that begin with `@ts-expect-error` are errors where there is none. */
const PROGRAM = `
import createClient from 'openapi-fetch'
import type { components, paths } from './generated.js'

const client = createClient<paths>({ baseUrl: 'http://127.0.0.1:8080' })

export async function calls (): Promise<void> {
  const fn = { name: 'get_skill', arguments: '{}' }
  const bodies = [
    { id: 'call_1', type: 'function', function: fn },
    { function: { name: 'list_skills' } },
    { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: fn }] },
    { tool_calls: [{ id: 'call_1', type: 'function', function: fn }] },
    [{ type: 'tool_use', id: 'toolu_1', name: 'get_skill', input: {} }],
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_skill', arguments: { skill_name: 'x' } } }
  ] as const
  await client.POST('/agent/tool-call', { body: { id: 'call_1', type: 'function', function: fn } })
  await client.POST('/agent/tool-call', { body: { model: 'm', choices: [{ message: { role: 'assistant', tool_calls: [] } }] } })
  await client.POST('/agent/tool-call', { params: { query: { others: 'skip', toolset: 'explore' } }, body: { type: 'function_call', id: '1', name: 'x', arguments: { a: 1 } } })
  for (const body of bodies) await client.POST('/agent/tool-call', { body: body as never })

  const { data } = await client.POST('/agent/tool-call', { body: [{ id: 'call_1', type: 'function', function: fn }] })
  const results: components['schemas']['ToolCallResponse'] | undefined = data
  if (Array.isArray(results)) for (const result of results) if ('tool_call_id' in result) console.log(result.tool_call_id)
  // @ts-expect-error there is no such choice
  await client.POST('/agent/tool-call', { params: { query: { others: 'keep' } }, body: [] })
}

export async function definitions (): Promise<unknown> {
  const { data = [] } = await client.GET('/agent/tools', { params: { query: { format: 'bedrock' } } })
  return data[0]?.['toolSpec']
}

export async function skills (): Promise<string> {
  const { data, error } = await client.GET('/skills')
  if (error !== undefined) throw new Error(error.detail)
  const names: string[] = data.skills
  const { data: skill } = await client.GET('/skills/{name}', { params: { path: { name: names[0] ?? '' } } })
  const { data: entry } = await client.GET('/catalog/{name}', { params: { path: { name: 'x' } } })
  const license: unknown = entry?.frontmatter['license']
  await client.POST('/agent/tools/{name}', { params: { path: { name: 'get_skill' } }, body: { skill_name: 'x' } })
  const { data: manifest } = await client.GET('/skills/{name}/files', { params: { path: { name: 'x' } } })
  const size: number | undefined = manifest?.files[0]?.size_bytes
  // @ts-expect-error a skill has no such member
  console.log(data.nope, size, license)
  return typeof skill === 'string' ? skill : skill?.documentation ?? ''
}
`

t.test('a client of openapi-typescript and openapi-fetch compiles under strict', async (t) => {
  const document = load(readFileSync(`${ROOT}openapi/openapi.yaml`, 'utf8')) as Parameters<typeof openapiTS>[0]
  const types = astToString(await openapiTS(document))
  // Of types alone: an object that may hold anything becomes one that may hold nothing without `additionalProperties`.
  const empty = types.split('\n').filter((line) => line.includes('Record<string, never>') && !line.startsWith('export type'))
  t.same(empty, [])
  t.same(diagnose({ 'program.ts': PROGRAM, 'generated.ts': types }), [])
})

/** The errors of a program whose files are in memory, in the folder of this file: packages are found as from here. */
function diagnose (files: Readonly<Record<string, string>>): readonly string[] {
  const folder = `${ROOT}test/clients/`
  const options: Typescript.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    types: [],
    // Of what has `fetch`, the smallest: a third of the DOM.
    lib: ['lib.es2023.d.ts', 'lib.webworker.d.ts'],
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext
  }
  const host = ts.createCompilerHost(options)
  host.jsDocParsingMode = ts.JSDocParsingMode.ParseNone
  const { readFile, fileExists, getSourceFile } = host
  const own = (name: string) => name.startsWith(folder) ? files[name.slice(folder.length)] : undefined
  host.readFile = (name) => own(name) ?? readFile(name)
  host.fileExists = (name) => own(name) !== undefined || fileExists(name)
  host.getSourceFile = (name, version, ...rest) => {
    const text = own(name)
    return text === undefined ? getSourceFile(name, version, ...rest) : ts.createSourceFile(name, text, version)
  }
  const program = ts.createProgram(Object.keys(files).map((name) => folder + name), options, host)
  return ts.getPreEmitDiagnostics(program).map(({ messageText, file, start = 0 }) =>
    `${file?.fileName.slice(ROOT.length)}:${file?.getLineAndCharacterOfPosition(start).line} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`)
}
