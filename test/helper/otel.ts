import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

export interface SpanLine {
  readonly name: string
  readonly kind: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly parent?: string
  readonly trace: string
  readonly id: string
  readonly links: number
  /** 0 is unset, 2 an error. */
  readonly status: number
  readonly events: number
}

const SDK = pathToFileURL(join(process.cwd(), 'node_modules/@opentelemetry/sdk-trace-node/build/src/index.js')).href
const API = pathToFileURL(join(process.cwd(), 'node_modules/@opentelemetry/api/build/src/index.js')).href

/**
 * What an operator loads: the SDK, with an exporter that appends lines to a file of the folder, and baggage as an
 * attribute.
 */
export function installSdk (folder: string): {
  readonly nodeOptions: readonly string[]
  text (): string
  spans (): readonly SpanLine[]
} {
  const file = join(folder, 'spans')
  const module = join(folder, 'otel.mjs')
  writeFileSync(file, '')
  writeFileSync(module, `
import { appendFileSync } from 'node:fs'
import otel from ${JSON.stringify(API)}
import { NodeTracerProvider, SimpleSpanProcessor } from ${JSON.stringify(SDK)}
const exporter = {
  export (spans, done) {
    for (const span of spans) {
      const { name, kind, attributes, parentSpanContext, links, status, events } = span
      const { traceId: trace, spanId: id } = span.spanContext()
      const line = JSON.stringify({
        name, kind, attributes, parent: parentSpanContext?.spanId, trace, id,
        links: links.length, status: status.code, events: events.length
      })
      appendFileSync(${JSON.stringify(file)}, line + '\\n')
    }
    done({ code: 0 })
  },
  async shutdown () {}
}
const team = {
  onStart (span, context) {
    const entry = otel.propagation.getBaggage(context)?.getEntry('team')
    if (entry !== undefined) span.setAttribute('team', entry.value)
  },
  onEnd () {},
  async forceFlush () {},
  async shutdown () {}
}
new NodeTracerProvider({ spanProcessors: [team, new SimpleSpanProcessor(exporter)] }).register()
`)
  const text = (): string => readFileSync(file, 'utf8')
  return {
    nodeOptions: ['--import', pathToFileURL(module).href],
    text,
    spans: () => text().trim().split('\n').map((line) => JSON.parse(line) as SpanLine)
  }
}
