import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { startProcess } from '../../helper/process.ts'
import { skill, until } from '../../helper/skills.ts'

const MODULES = new URL('../node_modules/@opentelemetry/', import.meta.url).href

/** What an operator writes: the SDK, with the exporter that reads the standard variables. */
const OTEL = `
import { OTLPTraceExporter } from '${MODULES}exporter-trace-otlp-http/build/src/index.js'
import { BatchSpanProcessor, NodeTracerProvider } from '${MODULES}sdk-trace-node/build/src/index.js'
const processor = new BatchSpanProcessor(new OTLPTraceExporter(), { scheduledDelayMillis: 50 })
new NodeTracerProvider({ spanProcessors: [processor] }).register()
`

interface Exported {
  readonly resourceSpans: ReadonlyArray<{
    readonly scopeSpans: ReadonlyArray<{
      readonly scope: { readonly name: string }
      readonly spans: ReadonlyArray<{ readonly name: string, readonly traceId: string }>
    }>
  }>
}

/** A collector that takes spans. */
async function startCollector (t: Test) {
  const exported: Exported[] = []
  const server = createServer(async (request, response) => {
    const body = await json(request)
    if (request.url === '/v1/traces') exported.push(body as Exported)
    response.setHeader('content-type', 'application/json').end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const spans = () => exported.flatMap(
    ({ resourceSpans }) => resourceSpans.flatMap(({ scopeSpans }) =>
      scopeSpans.flatMap(({ scope, spans }) => spans.map((span) => ({ ...span, scope: scope.name })))))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans }
}

async function startTraced (t: Test, endpoint: string) {
  const folder = t.testdir({ skills: { demo: skill('demo') }, 'otel.mjs': OTEL })
  writeFileSync(join(folder, 'otel.mjs'), OTEL)
  return await startProcess(t, {
    args: [join(folder, 'skills')],
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint },
    nodeOptions: ['--import',
      pathToFileURL(join(folder, 'otel.mjs')).href]
  })
}

t.test('K72: spans reach a collector over OTLP, in the trace of the caller', async (t) => {
  const collector = await startCollector(t)
  const service = await startTraced(t, collector.url)
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
  await (await fetch(`${service.url}/skills/demo`,
    { headers: { traceparent: `00-${trace}-00f067aa0ba902b7-01` } })).text()
  const requests = () => collector.spans().filter(({ name }) => name === 'GET /skills/:name')
  await until(() => requests().length > 0)
  t.match(requests(), [{ traceId: trace, scope: '@fastify/otel' }])
  t.match(await service.stop(), { code: 0 })
})
