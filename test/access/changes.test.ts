import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openEvents } from '../helper/event-stream.ts'
import { buildGuarded, newSecret } from '../helper/guarded.ts'
import { skill, skillText } from '../helper/skills.ts'

const ann = newSecret('ann', 'groups: [docs]')
const bob = newSecret('bob', 'groups: [ops]')

function access (rules: string, tokens = [ann, bob]): string {
  return `tokens:\n${tokens.map(({ entry }) => `  - ${entry}\n`).join('')}rules:\n${rules}`
}

const DOCS = '  - { groups: [docs], roots: [docs] }\n'
const OPS = '  - { groups: [ops], roots: [ops] }\n'

async function start (t: Test) {
  const service = await buildGuarded(t, {
    roots: { docs: { guide: skill('guide') }, ops: { pager: skill('pager') } }, access: access(DOCS + OPS), watcher: true
  })
  const open = async (token: string, lastId?: string) => {
    const stream = await openEvents(service.url, { headers: [`Authorization: Bearer ${token}`, ...lastId === undefined ? [] : [`Last-Event-ID: ${lastId}`]] })
    t.teardown(() => { stream.destroy() })
    return stream
  }
  return { ...service, open }
}

t.test('K64: a stream tells of what its caller sees, and its ids count nothing else', async (t) => {
  const { open, folder } = await start(t)
  const [ofAnn, ofBob] = [await open(ann.text), await open(bob.text)]
  await ofAnn.until('its beginning', () => ofAnn.lastEventId !== '')
  mkdirSync(join(folder, 'ops', 'new'))
  writeFileSync(join(folder, 'ops', 'new', 'SKILL.md'), skillText('new'))
  await ofBob.until('the new skill', () => ofBob.events.some(({ data }) => data['name'] === 'new'))
  appendFileSync(join(folder, 'docs', 'guide', 'SKILL.md'), '!')
  await ofAnn.until('the edit', () => ofAnn.events.some(({ data }) => data['name'] === 'guide'))
  t.notMatch(JSON.stringify(ofAnn.events), /new|pager/)
})

t.test('K64: a change of policy ends the streams of callers who see something else, and no others; they come back to what they see now', async (t) => {
  const { open, setAccess, get, folder, url } = await start(t)
  const [ofAnn, ofBob] = [await open(ann.text), await open(bob.text)]
  const mcp = await openEvents(url, { target: '/mcp', headers: [`Authorization: Bearer ${ann.text}`, 'Accept: text/event-stream'] })
  t.teardown(() => { mcp.destroy() })
  await ofAnn.until('a revision of the catalog', () => /^[\da-f]{64}$/.test(ofAnn.lastEventId))
  // Both groups see the same skills as before, by another rule.
  await setAccess(access(`${OPS}${DOCS}`, [ann, bob]))
  for (const [rules, skills] of [
    [`${DOCS}${OPS}  - { groups: [docs], roots: [ops] }\n`, ['guide', 'pager']],
    [DOCS + OPS, ['guide']]
  ] as const) {
    const stream = await open(ann.text)
    await stream.until('its beginning', () => stream.lastEventId !== '')
    await setAccess(access(rules))
    await stream.until('its end', () => stream.complete)
    t.strictSame(await (await get('/skills', ann.text)).json(), { skills })
    const resumed = await open(ann.text, stream.lastEventId)
    t.match(await resumed.event(0), { type: 'reset' })
    appendFileSync(join(folder, 'ops/pager/SKILL.md'), '!')
    appendFileSync(join(folder, 'docs/guide/SKILL.md'), '!')
    await resumed.until('the edit', () => resumed.events.some(({ data }) => data['name'] === 'guide'))
    if (skills.length === 1) t.notMatch(JSON.stringify(resumed.events), 'pager')
    resumed.destroy()
  }
  for (const stream of [ofAnn, mcp]) await stream.until('its end', () => stream.complete)
  t.notOk(ofBob.complete, 'bob sees what he saw')
})

t.test('K60: a token that is removed ends its streams, and works no more', async (t) => {
  const { open, setAccess, get } = await start(t)
  const stream = await get('/events', ann.text)
  const other = await open(bob.text)
  const all = stream.text()
  await setAccess(access(DOCS + OPS, [bob]))
  t.match(await all, 'retry:', 'it ends')
  t.notOk(other.connection.ended)
  t.equal((await get('/skills', ann.text)).status, 401)
  t.equal((await get('/skills', bob.text)).status, 200)
})

t.test('K60: a broken file widens nothing: the last good one stays, and the log and /readyz say so', async (t) => {
  const { breakAccess, setAccess, get, folder, logText } = await start(t)
  await breakAccess(`${access(DOCS + OPS)}  - { group: [docs] }\n`)
  t.match(logText(), 'access.yaml:7: rules[2].group is an unknown key; allowed: groups, roots, skills')
  t.strictSame(await (await get('/skills', ann.text)).json(), { skills: ['guide'] })
  t.match(await (await get('/readyz', ann.text)).json(), { status: 'ready', detail: /the last good one stays in force/ })
  rmSync(join(folder, 'access.yaml'))
  t.equal((await get('/skills', ann.text)).status, 200)
  await setAccess(access(DOCS, [ann]))
  t.equal((await get('/skills', bob.text)).status, 401)
  t.notMatch(JSON.stringify(await (await get('/readyz', ann.text)).json()), 'last good one')
})

t.test('K64: a cursor of one view is not valid in another', async (t) => {
  const cy = newSecret('cy', 'groups: [docs, ops]')
  const { get } = await buildGuarded(t, {
    roots: { docs: { a: skill('a'), b: skill('b'), c: skill('c') }, ops: { z: skill('z') } }, access: access(DOCS + OPS, [ann, cy])
  })
  const { next_cursor: cursor } = await (await get('/catalog?limit=1', ann.text)).json() as { next_cursor: string }
  t.equal((await get(`/catalog?limit=1&cursor=${cursor}`, ann.text)).status, 200)
  const other = await get(`/catalog?limit=1&cursor=${cursor}`, cy.text)
  t.equal(other.status, 400)
  t.match(await other.json(), { code: 'bad_cursor' })
})
