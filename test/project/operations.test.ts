import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { collectDefaultMetrics, Registry } from 'prom-client'
import t from 'tap'
import { OPERATIONS, withMetrics } from '../../scripts/tables.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const DOCUMENT = readFileSync(`${ROOT}${OPERATIONS}`, 'utf8')
const ROWS = DOCUMENT.matchAll(/^\| `(\w+)` \| (counter|gauge|histogram) \|/gm)
const TYPES = new Map(Array.from(ROWS, ([, name = '', type = '']) => [name, type]))

/** Labels that look like a metric. */
const LABELS = ['http_route', 'http_response_status_code', 'http_request_method', 'mcp_method_name']

/** Names in a query that look like a metric. */
const METRIC = /\b(?:http|mcp|skillserve|nodejs|process)_[a-z_]+\b(?!\s*=)/g

t.test('K71 K73: the tables of metrics and audit events in the documents are those of the source', async (t) => {
  t.equal(DOCUMENT, withMetrics(DOCUMENT))
})

t.test('K71: dashboard and alert rules name metrics that exist', async (t) => {
  t.ok(TYPES.size > 25)
  const register = new Registry()
  collectDefaultMetrics({ register })
  const types = new Map(TYPES)
  for (const { name, type } of await register.getMetricsAsJSON()) types.set(name, String(type))
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
