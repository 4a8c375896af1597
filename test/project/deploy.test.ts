import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { load } from 'js-yaml'
import t from 'tap'
import { OPERATIONS, withMetrics } from '../../scripts/tables.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { hasProgram, KUSTOMIZATIONS, kustomize } from '../helper/proxies.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const VARIABLES = new Set(Object.values(SETTINGS).map(({ variable }) => variable as string))

interface Composed {
  readonly services: Readonly<Record<string, { readonly environment?: object }>>
  readonly 'x-replica'?: { readonly environment: object }
}

/** Variables of the runtime, and of the examples themselves. */
const OTHERS = new Set(['NODE_ENV', 'NODE_OPTIONS'])

const noKubectl = !hasProgram('kubectl', 'version', '--client') && 'kubectl is not installed'

t.test('K90: kustomize makes the same kinds of each variant', { skip: noKubectl }, async (t) => {
  for (const name of KUSTOMIZATIONS) {
    t.strictSame(new Set(kustomize(name).map(({ apiVersion, kind }) => `${apiVersion} ${kind}`)), new Set([
      'v1 Namespace', 'v1 Service', 'apps/v1 Deployment', 'policy/v1 PodDisruptionBudget',
      'autoscaling/v2 HorizontalPodAutoscaler', 'networking.k8s.io/v1 NetworkPolicy'
    ]), name)
  }
})

t.test('K90: every variable that an example sets is a setting', (t) => {
  const settings = (path: string): string[] => {
    const text = readFileSync(`${ROOT}${path}`, 'utf8')
    const { services, 'x-replica': replica } = path.endsWith('.yml') || path.includes('compose')
      ? load(text) as Composed
      : { services: {}, 'x-replica': undefined }
    const composed = [...Object.values(services), ...replica === undefined ? [] : [replica]]
      .flatMap(({ environment = {} }) => Object.keys(environment))
    const units = Array.from(text.matchAll(/^(?:Environment=)?([A-Z_]+=.*)$/gm), ([, line = '']) => line.split(' '))
      .flat().map((pair) => pair.split('=', 1)[0] ?? '')
    const pods = Array.from(text.matchAll(/\{ name: ([A-Z_]+), value:/g), ([, name = '']) => name)
    return [...composed, ...units, ...pods]
  }
  const paths = [
    'docker-compose.yml', 'deploy/compose/compose.yaml', 'deploy/compose/team.yaml',
    'deploy/production/skillserve.env', 'deploy/systemd/skillserve.service', 'deploy/systemd/skillserve@.service',
    'deploy/kubernetes/base/deployment.yaml', 'deploy/kubernetes/git-sync/sidecar.yaml'
  ]
  for (const path of paths) {
    const names = settings(path)
    t.ok(names.length > 0, path)
    t.strictSame(names.filter((name) => !VARIABLES.has(name) && !OTHERS.has(name)), [], path)
  }
  t.end()
})

t.test('K90: the page of the folder names every example', (t) => {
  const page = readFileSync(`${ROOT}deploy/README.md`, 'utf8')
  for (const entry of readdirSync(`${ROOT}deploy`, { withFileTypes: true })) {
    if (entry.isDirectory()) t.match(page, `\`${entry.name}/\``)
  }
  t.ok(existsSync(`${ROOT}deploy/compose/nginx.conf`))
  t.end()
})

const DOCUMENT = readFileSync(`${ROOT}${OPERATIONS}`, 'utf8')

/** Labels that look like a metric. */
const LABELS = ['http_route', 'http_response_status_code', 'http_request_method', 'mcp_method_name']

/** Names in a query that look like a metric. */
const METRIC = /\b(?:http|mcp|skillserve|nodejs|process)_[a-z_]+\b(?!\s*=)/g

t.test('K71 K73: the tables of metrics and audit events in the documents are those of the source', async (t) => {
  t.equal(DOCUMENT, withMetrics(DOCUMENT))
})

t.test('K71: dashboard and alert rules name metrics that exist', async (t) => {
  const { registry } = createMetrics({ skills: createSkillManager({ projectRoots: [] }), version: '' })
  const types = new Map((await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)]))
  for (const file of ['deploy/grafana/skillserve.json', 'deploy/prometheus/alerts.yml']) {
    const queries = readFileSync(`${ROOT}${file}`, 'utf8')
      .replace(/\bby \([^)]*\)|\blabel_values\(|\{[^{}]*"?\}/g, (text) => text.startsWith('label') ? text : ' ')
    const names = new Set((queries.match(METRIC) ?? []).filter((name) => !LABELS.includes(name)))
    t.ok(names.size > 10, file)
    for (const name of names) {
      const family = name.replace(/_(?:bucket|count|sum)$/, '')
      t.ok(types.has(name) ? types.get(name) !== 'histogram' : types.get(family) === 'histogram', `${file}: ${name}`)
    }
  }
  const dashboard = JSON.parse(readFileSync(`${ROOT}deploy/grafana/skillserve.json`, 'utf8')) as { panels: unknown }
  t.ok(Array.isArray(dashboard.panels))
})

const skip = spawnSync('promtool', ['--version']).error !== undefined && 'promtool is not installed'

t.test('K71: promtool accepts rules and scrape configuration, and each alert fires alone', { skip }, async (t) => {
  const checks = [
    ['check', 'rules', 'alerts.yml'], ['check', 'config', 'scrape.yml'],
    ['test', 'rules', '../../test/project/alerts.yml']
  ]
  const options = { cwd: `${ROOT}deploy/prometheus`, encoding: 'utf8' } as const
  for (const args of checks) {
    const { status, stdout, stderr } = spawnSync('promtool', args, options)
    t.equal(status, 0, `${stdout}${stderr}`)
  }
})
