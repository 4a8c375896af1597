import { readFileSync } from 'node:fs'
import { load } from 'js-yaml'
import { MORE_ENDPOINTS } from '../src/routes/endpoints.ts'
import { problems } from '../src/schemas/problem.ts'
import { DEFINITION_FORMATS } from '../src/tools/dialects/index.ts'
import { TOOLSETS } from '../src/tools/tool.ts'
import { createTools } from '../src/tools/tools.ts'

const REFERENCES = 'skills/using-skillserve/references'
const OPENAPI = new URL('../openapi/openapi.yaml', import.meta.url)

interface OpenApiPaths {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly summary?: string }>>>>
}

/** Lists the references of the example skill `using-skillserve`, with their generated lists. */
export const EXAMPLE_SKILL: Readonly<Record<string, (text: string) => string>> = {
  [`${REFERENCES}/http-api.md`]: (text) => withLists(text, { routes: routeRows, errors: errorRows }),
  [`${REFERENCES}/tool-calls.md`]: (text) => withLists(text, { tools: toolRows, definitions: definitionRows })
}

/** Returns docs/rest.md with the error codes of each status. */
export function withErrors (text: string): string {
  return withLists(text, { errors: statusRows })
}

/** Replaces what is between two marks, such as `<!-- routes -->` and `<!-- /routes -->`. */
function withLists (text: string, lists: Readonly<Record<string, () => readonly string[]>>): string {
  return Object.entries(lists).reduce((written, [name, rows]) => {
    const marked = new RegExp(`(?<=<!-- ${name} -->\n)[^]*(?=<!-- /${name} -->)`)
    if (!marked.test(written)) throw new Error(`there is no place for the list of ${name}`)
    return written.replace(marked, () => `\n${rows().map((row) => `${row}\n`).join('')}\n`)
  }, text)
}

function routeRows (): string[] {
  const { paths } = load(readFileSync(OPENAPI, 'utf8')) as OpenApiPaths
  const documented = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { summary = '' }]) => ({
      methods: [method.toUpperCase()],
      path: path.replace('{path}', '*').replaceAll(/\{(\w+)\}/g, ':$1'),
      summary
    })))
  const rows = [...documented, ...MORE_ENDPOINTS].map(({ methods, path, summary }) =>
    `| \`${methods.join('`, `')} ${path}\` | ${summary} |`)
  return ['| Route | Answer |', '|---|---|', ...rows]
}

function errorRows (): string[] {
  const rows = Object.entries(problems).sort(([, one], [, other]) => one.status - other.status)
  const lines = rows.map(([code, { status, text }]) => `| ${status} | \`${code}\` | ${text} |`)
  return ['| Status | `code` | What it says |', '|---|---|---|', ...lines]
}

function statusRows (): string[] {
  const all = Object.entries(problems)
  const statuses = [...new Set(all.map(([, { status }]) => status))].sort((one, other) => one - other)
  const codesOf = (status: number) => all.filter(([, each]) => each.status === status).map(([code]) => `\`${code}\``)
  return ['| Status | `code` |', '|---|---|', ...statuses.map((status) => `| ${status} | ${codesOf(status).join(', ')} |`)]
}

function toolRows (): string[] {
  const rows = createTools().map(({ name, toolset, description, parameters }) => {
    const args = Object.keys(parameters.properties).map((key) =>
      `\`${key}\`${parameters.required.includes(key) ? '' : ' (optional)'}`)
    return `| \`${name}\` | \`${toolset}\` | ${args.join(', ') || 'none'} | ${description} |`
  })
  return ['| Tool | Toolset | Arguments | Description for the model |', '|---|---|---|---|', ...rows]
}

function definitionRows (): string[] {
  return [
    `- \`format\`: \`${DEFINITION_FORMATS.join('`, `')}\`; without it \`openai\``,
    `- \`toolset\`: \`${TOOLSETS.join('`, `')}\`, \`all\`; without it \`reader\``
  ]
}
