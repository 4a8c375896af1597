import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { collectDefaultMetrics, Registry } from 'prom-client'
import t from 'tap'
import { OPERATIONS, withMetrics } from '../../scripts/tables.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const DOCUMENT = readFileSync(`${ROOT}${OPERATIONS}`, 'utf8')
const TYPES = new Map(Array.from(DOCUMENT.matchAll(/^\| `(\w+)` \| (counter|gauge|histogram) \|/gm), ([, name = '', type = '']) => [name, type]))

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
    const queries = readFileSync(`${ROOT}${file}`, 'utf8').replace(/\bby \([^)]*\)|\blabel_values\(|\{[^{}]*"?\}/g, (text) => text.startsWith('label') ? text : ' ')
    const names = new Set((queries.match(METRIC) ?? []).filter((name) => !/^(?:http_route|http_response_status_code|http_request_method|mcp_method_name)$/.test(name)))
    t.ok(names.size > 10, file)
    for (const name of names) {
      const family = name.replace(/_(?:bucket|count|sum)$/, '')
      t.ok(types.has(name) ? types.get(name) !== 'histogram' : types.get(family) === 'histogram', `${file}: ${name}`)
    }
  }
  t.ok(Array.isArray((JSON.parse(readFileSync(`${ROOT}deploy/grafana/skillserve.json`, 'utf8')) as { readonly panels: unknown }).panels))
})

const hasPromtool = spawnSync('promtool', ['--version']).error === undefined

t.test('K71: promtool accepts the alert rules and the scrape configuration, and each alert fires for what it is meant for alone', { skip: hasPromtool ? false : 'promtool is not installed' }, async (t) => {
  for (const args of [['check', 'rules', 'alerts.yml'], ['check', 'config', 'scrape.yml'], ['test', 'rules', '../../test/project/alerts.yml']]) {
    const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: `${ROOT}deploy/prometheus`, encoding: 'utf8' })
    t.equal(status, 0, `${stdout}${stderr}`)
  }
})
