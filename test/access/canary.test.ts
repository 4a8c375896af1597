import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { newSecret } from '../helper/guarded.ts'
import { freePort } from '../helper/proxies.ts'
import { startProcess } from '../helper/process.ts'
import { skill } from '../helper/skills.ts'
import { questions } from './questions.ts'

/** In name, description, text, path and content of what is hidden, and nowhere else. */
const CANARY = 'qzcanaryxv'

t.test('K64: no answer, header, metric, audit line or line of a request holds anything of a hidden skill', async (t) => {
  const ann = newSecret('ann', 'groups: [docs]')
  const hidden = `---\nname: ${CANARY}\ndescription: ${CANARY} orange\n---\n${CANARY} orange\n`
  const folder = t.testdir({
    docs: { alpha: skill('alpha', { 'notes.txt': 'orange' }), beta: skill('beta') },
    ops: {
      [CANARY]: { 'SKILL.md': hidden, [`${CANARY}.txt`]: CANARY },
      alpha: { 'SKILL.md': hidden, 'notes.txt': CANARY },
      gamma: { 'SKILL.md': hidden, 'notes.txt': CANARY },
      delta: { 'SKILL.md': `---\nname: [${CANARY}\n---\n${CANARY}` }
    }
  })
  const at = (name: string) => join(folder, name)
  writeFileSync(at('access.yaml'), `tokens:\n  - ${ann.entry}\nrules:\n  - { groups: [docs], roots: [docs] }\n  - { groups: [ops], roots: [ops] }\n`)
  const metricsPort = String(await freePort())
  // The hidden skill of the same name comes first.
  const service = await startProcess(t, { args: [at('ops'), at('docs'), '--access', at('access.yaml')], env: { METRICS_PORT: metricsPort, AUDIT_LOG: at('audit.log'), LOG_FORMAT: 'json' } })
  const all = [...questions(['alpha', 'beta', 'gamma', 'delta']).values()]
  const leaks: string[] = []
  let answers = 0
  for (const token of [ann.text, undefined]) {
    for (const [label, { method = 'GET', url, headers = {}, payload }] of all) {
      const response = await fetch(`${service.url}${String(url)}`, {
        method, headers: { ...headers as Record<string, string>, ...token !== undefined && { authorization: `Bearer ${token}` } }, ...typeof payload === 'string' && { body: payload }
      })
      const text = `${JSON.stringify([...response.headers])}${Buffer.from(await response.arrayBuffer()).toString('latin1')}`
      if (text.includes(CANARY)) leaks.push(label)
      answers++
    }
  }
  t.ok(answers > 400, `${answers} answers`)
  t.strictSame(leaks, [])
  t.notMatch(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text(), CANARY)
  await service.stop()
  const audit = readFileSync(at('audit.log'), 'utf8')
  t.match(audit, '"alpha"')
  t.notMatch(audit, CANARY)
  // The operator's own lines name skills; those of requests do not.
  t.strictSame(service.log().filter((line) => 'reqId' in line && JSON.stringify(line).includes(CANARY)), [])
  t.ok(service.log().some((line) => JSON.stringify(line).includes(CANARY)), 'the operator is told of the skill that cannot be read')
})
